#include "models/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "models/data/plain_file.h"
#include "models/weights/float_formats.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::string_view metadata_key = "__metadata__";
constexpr std::size_t length_bytes = 8;

// Bytes of one element, 0 for a dtype this program does not know.
unsigned element_bytes(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype == "F8_E4M3" || dtype == "F8_E5M2") return 1;
  return 0;
}

std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) {
    if (extent != 0 && elements > std::numeric_limits<std::uint64_t>::max() / 8 / extent) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

// Receives the header piece by piece and keeps only the members of the format; any other member stops the parser. So
// the depth is at most three for any file.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string wrong;           // why the parser stopped
  std::size_t wrong_byte = 0;  // where, when the JSON itself is broken

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::start:
        place_ = Place::names;
        return true;
      case Place::name:
        return open_entry();
      default:
        return stop("an object stands where none belongs");
    }
  }
  bool end_object() override {
    if (place_ == Place::names) {
      place_ = Place::done;
      return true;
    }
    if (place_ == Place::entry && !(has_dtype_ && has_shape_ && has_offsets_))
      return stop("it lacks dtype, shape or data_offsets");
    place_ = Place::names;
    return true;
  }
  bool key(string_t& text) override {
    if (place_ == Place::names) {
      name_ = text;
      place_ = Place::name;
      return names_.insert(name_).second || stop("the name is used twice");
    }
    key_ = text;
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata)
      return metadata.emplace(key_, text).second || stop("a metadata key is used twice");
    if (place_ != Place::entry || key_ != "dtype" || has_dtype_)
      return stop("a text stands where none belongs");
    entries.back().dtype = text;
    return has_dtype_ = true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::entry) return stop("a list stands where none belongs");
    if (key_ == "shape" && !has_shape_) {
      place_ = Place::shape;
      return has_shape_ = true;
    }
    if (key_ != "data_offsets" || has_offsets_)
      return stop("a list is neither shape nor data_offsets, or comes twice");
    place_ = Place::offsets;
    offsets_.clear();
    return has_offsets_ = true;
  }
  bool end_array() override {
    if (place_ == Place::offsets) {
      if (offsets_.size() != 2) return stop("data_offsets are not two numbers");
      entries.back().begin = offsets_[0];
      entries.back().end = offsets_[1];
    }
    place_ = Place::entry;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    std::vector<std::uint64_t>* list = place_ == Place::shape     ? &entries.back().shape
                                       : place_ == Place::offsets ? &offsets_
                                                                  : nullptr;
    if (list == nullptr || list->size() == SafetensorsFile::dimensions_max)
      return stop("a number stands where none belongs, or a list is too long");
    list->push_back(value);
    return true;
  }
  bool null() override { return stop("a null stands where none belongs"); }
  bool boolean(bool) override { return stop("a truth value stands where none belongs"); }
  bool number_integer(number_integer_t) override { return stop("a size or offset is negative"); }
  bool number_float(number_float_t, const string_t&) override {
    return stop("a size or offset is no whole number");
  }
  bool binary(binary_t&) override { return stop("binary data in the header"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    wrong_byte = position;
    return stop("it is not valid JSON");
  }

 private:
  enum class Place { start, names, name, entry, shape, offsets, metadata, done };

  bool open_entry() {
    if (name_ == metadata_key) {
      place_ = Place::metadata;
      return true;
    }
    place_ = Place::entry;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    entries.emplace_back();
    entries.back().name = name_;
    return true;
  }
  bool stop(const char* why) {
    if (wrong.empty())
      wrong = name_.empty() ? std::string(why) : str("at '", name_.substr(0, 200), "': ", why);
    return false;
  }

  Place place_ = Place::start;
  std::string name_, key_;
  std::set<std::string> names_;
  std::vector<std::uint64_t> offsets_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

Error damaged(std::uint64_t byte, const std::string& why) {
  return Error{Errc::corrupt, str("safetensors file is damaged at byte ", byte, ": ", why)};
}

// Checks one entry alone: known dtype, and a shape that fills its range.
std::string wrong_with(const SafetensorsEntry& entry, std::uint64_t data_bytes) {
  const unsigned width = element_bytes(entry.dtype);
  if (width == 0) return str("has unknown dtype '", entry.dtype.substr(0, 32), "'");
  if (entry.begin > entry.end || entry.end > data_bytes)
    return str("has data_offsets [", entry.begin, ", ", entry.end, "] outside the ", data_bytes, " bytes of data",
               entry.begin <= entry.end ? "; the file is cut short" : "");
  const std::optional<std::uint64_t> elements = product(entry.shape);
  if (!elements || *elements * width != entry.end - entry.begin)
    return str("has a shape that does not fill its ", entry.end - entry.begin, " bytes");
  return {};
}

Result<void> check_cover(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_at,
                         std::uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) {
    if (const std::string wrong = wrong_with(entry, data_bytes); !wrong.empty())
      return damaged(length_bytes, str("tensor '", entry.name.substr(0, 200), "' ", wrong));
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
  });
  std::uint64_t covered = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin != covered)
      return damaged(data_at + std::min(covered, entry->begin),
                     str("tensor '", entry->name.substr(0, 200), "' ",
                         entry->begin < covered ? "overlaps another" : "leaves a gap before it"));
    covered = entry->end;
  }
  if (covered != data_bytes)
    return damaged(data_at + covered, str(data_bytes - covered, " bytes belong to no tensor"));
  return {};
}

// A ZIP file, or in older versions a pickle.
bool is_of_torch_save(BytesView bytes) {
  constexpr std::array<std::uint8_t, 4> zip = {'P', 'K', 3, 4};
  constexpr std::array<std::uint8_t, 2> pickle = {0x80, 2};
  return std::equal(zip.begin(), zip.end(), bytes.begin()) || std::equal(pickle.begin(), pickle.end(), bytes.begin());
}

// The size of the header and the header, as far as the file has them.
Result<Bytes> front_of(const PlainFile& file) {
  Bytes front(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), length_bytes)));
  if (auto done = file.read(0, front); !done) return done.error();
  if (front.size() < length_bytes) return front;
  const std::uint64_t header_bytes = ByteReader(front).u64();
  if (header_bytes > SafetensorsFile::header_bytes_max || header_bytes > file.size() - length_bytes) return front;
  front.resize(length_bytes + static_cast<std::size_t>(header_bytes));
  if (auto done = file.read(0, front); !done) return done.error();
  return front;
}

}  // namespace

std::uint64_t SafetensorsEntry::elements() const {
  return product(shape).value_or(0);
}

Result<SafetensorsFile> SafetensorsFile::parse_header(BytesView bytes, std::uint64_t file_bytes) {
  if (file_bytes < length_bytes) return damaged(bytes.size(), "it is shorter than the size of a header");
  const std::uint64_t header_bytes = ByteReader(bytes).u64();
  if (header_bytes > header_bytes_max && is_of_torch_save(bytes))
    return Error{Errc::corrupt, "this is a file of torch.save(), which only Python can read; write one with "
                                "safetensors.torch.save_file(model.state_dict(), path)"};
  if (header_bytes > header_bytes_max)
    return damaged(0, str("a header of ", header_bytes, " bytes is beyond the limit of ", header_bytes_max,
                          "; is it a safetensors file?"));
  if (header_bytes > file_bytes - length_bytes)
    return damaged(0, str("a header of ", header_bytes, " bytes does not fit; the file is cut short"));
  const std::uint8_t* header = bytes.data() + length_bytes;
  HeaderHandler handler;
  if (header_bytes == 0 || *header != '{') return damaged(length_bytes, "the header does not begin with '{'");
  if (!nlohmann::json::sax_parse(header, header + header_bytes, &handler))
    return damaged(length_bytes + handler.wrong_byte, "the header cannot be read: " + handler.wrong);
  SafetensorsFile file;
  file.data_at_ = length_bytes + header_bytes;
  file.entries_ = std::move(handler.entries);
  file.metadata_ = std::move(handler.metadata);
  Result<void> covered = check_cover(file.entries_, file.data_at_, file_bytes - file.data_at_);
  if (!covered) return covered.error();
  for (std::size_t i = 0; i < file.entries_.size(); ++i) file.by_name_.emplace(file.entries_[i].name, i);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::parse(Bytes bytes) {
  auto file = parse_header(bytes, bytes.size());
  if (file) file->bytes_ = std::make_shared<const Bytes>(std::move(bytes));
  return file;
}

Result<SafetensorsFile> SafetensorsFile::read(const std::string& path) {
  auto opened = PlainFile::open(path);
  if (!opened && opened.error().code == Errc::not_found)
    return Error{Errc::not_found, str("there is no file ", path)};
  if (!opened) return opened.error();
  const auto front = front_of(**opened);
  if (!front) return Error{front.error().code, str(path, ": ", front.error().text)};
  Result<SafetensorsFile> file = parse_header(*front, (*opened)->size());
  if (!file) return Error{file.error().code, str(path, ": ", file.error().text)};
  file->file_ = std::move(*opened);
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

Result<void> SafetensorsFile::read(const SafetensorsEntry& entry, std::uint64_t first,
                                   std::span<std::uint8_t> out) const {
  RUMOR_CHECK(first <= entry.end - entry.begin && out.size() <= entry.end - entry.begin - first);
  const std::uint64_t at = data_at_ + entry.begin + first;
  if (file_ == nullptr) {
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
    return {};
  }
  if (auto done = file_->read(at, out); !done)
    return Error{done.error().code, str("tensor ", entry.name, ": ", done.error().text)};
  return {};
}

Result<Bytes> SafetensorsFile::all_of(const SafetensorsEntry& entry) const {
  Bytes bytes(static_cast<std::size_t>(entry.end - entry.begin));
  if (auto done = read(entry, 0, bytes); !done) return done.error();
  return bytes;
}

bool SafetensorsFile::has_floats(const SafetensorsEntry& entry) { return float_format(entry.dtype).has_value(); }

Result<std::vector<float>> SafetensorsFile::floats(const SafetensorsEntry& entry) const {
  const std::optional<FloatFormat> format = float_format(entry.dtype);
  if (!format)
    return Error{Errc::mismatch, str("tensor ", entry.name, " is ", entry.dtype, ", not F32, BF16, F16 or F64")};
  const auto bytes = all_of(entry);
  if (!bytes) return bytes.error();
  std::vector<float> values(bytes->size() / bytes_of(*format));
  read_floats(*format, *bytes, 0, 1, values);
  return values;
}

Result<std::vector<std::uint32_t>> SafetensorsFile::words(const SafetensorsEntry& entry) const {
  if (entry.dtype != "U32")
    return Error{Errc::mismatch, str("tensor ", entry.name, " is ", entry.dtype, ", not U32")};
  std::vector<std::uint32_t> values;
  const auto bytes = all_of(entry);
  if (!bytes) return bytes.error();
  ByteReader in(*bytes);
  values.reserve(in.remaining() / 4);
  while (in.remaining() >= 4) values.push_back(in.u32());
  return values;
}

}  // namespace rumor::models
