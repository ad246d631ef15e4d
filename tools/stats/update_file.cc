#include "tools/stats/update_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::tools {
namespace {

using models::SafetensorsEntry;
using models::SafetensorsFile;

Error unusable(const std::string& name, const std::string& why) {
  return Error{Errc::corrupt, str("tensor '", name.substr(0, 200), "' ", why)};
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "1024,784" -> {1024, 784}; empty for a scalar.
std::optional<std::vector<std::uint32_t>> shape_of(std::string_view text) {
  std::vector<std::uint32_t> shape;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::optional<std::uint64_t> extent = whole_number(text.substr(0, comma));
    if (!extent || *extent > limits::params_max || shape.size() == SafetensorsFile::dimensions_max)
      return std::nullopt;
    shape.push_back(static_cast<std::uint32_t>(*extent));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return shape;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

enum class Part { values, positions, signs };

// The parts of an entry's name.
struct Label {
  std::uint64_t step = 0;
  std::string tensor;
  Part part = Part::values;
};

Result<Label> label_of(const SafetensorsEntry& entry) {
  const std::string_view name = entry.name;
  const std::size_t slash = name.find('/');
  const std::optional<std::uint64_t> step = whole_number(name.substr(0, std::min(slash, name.size())));
  if (slash == std::string_view::npos || !step)
    return unusable(entry.name,
                    "is not named STEP/NAME with a number for STEP; a file of weights holds no updates");
  std::string_view tensor = name.substr(slash + 1);
  Label label{.step = *step, .tensor = {}, .part = Part::values};
  if (entry.dtype == "U32" && drop_suffix(tensor, ".index"))
    label.part = Part::positions;
  else if (entry.dtype == "U8" && drop_suffix(tensor, ".sign"))
    label.part = Part::signs;
  else if (!SafetensorsFile::has_floats(entry))
    return unusable(entry.name, str("is ", entry.dtype,
                                    "; dense updates are F32, BF16, F16 or F64, sparse ones NAME.index U32 and "
                                    "NAME.sign U8"));
  label.tensor = tensor;
  return label;
}

}  // namespace

// The file sorted into steps and tensors, while it is being read.
struct UpdateFile::Collected {
  const SafetensorsFile& file;
  bool dense = false, sparse = false;
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::size_t, std::less<>> tensor_of;
  std::map<std::uint64_t, std::map<std::size_t, Piece>> steps;

  bool is_empty(std::size_t tensor) const {
    const std::vector<std::uint32_t>& extents = tensors[tensor].shape;
    return std::find(extents.begin(), extents.end(), 0u) != extents.end();
  }

  // The shape of a tensor: its own if dense, that of the metadata if sparse.
  Result<std::vector<std::uint32_t>> shape(const SafetensorsEntry& entry, const Label& label) const {
    if (label.part == Part::values) {
      for (const std::uint64_t extent : entry.shape)
        if (extent > limits::params_max) return unusable(entry.name, "is larger than any model may be");
      return std::vector<std::uint32_t>(entry.shape.begin(), entry.shape.end());
    }
    const auto text = file.metadata().find(label.tensor);
    if (text == file.metadata().end())
      return unusable(entry.name,
                      str("has no shape in the metadata; add \"", label.tensor, "\": \"rows,columns\""));
    const auto shape = shape_of(text->second);
    if (!shape)
      return unusable(entry.name, str("has the shape '", text->second.substr(0, 100),
                                      "' in the metadata, "
                                      "which is not like \"1024,784\""));
    return *shape;
  }

  Result<std::size_t> tensor(const SafetensorsEntry& entry, const Label& label) {
    const Result<std::vector<std::uint32_t>> its_shape = shape(entry, label);
    if (!its_shape) return its_shape.error();
    const auto [at, is_new] = tensor_of.emplace(label.tensor, tensors.size());
    if (is_new) tensors.push_back({.name = label.tensor, .shape = *its_shape});
    if (tensors[at->second].shape != *its_shape)
      return unusable(entry.name, "has another shape than in earlier steps");
    return at->second;
  }

  Result<void> add(std::size_t place) {
    const SafetensorsEntry& entry = file.entries()[place];
    const Result<Label> label = label_of(entry);
    if (!label) return label.error();
    (label->part == Part::values ? dense : sparse) = true;
    if (dense && sparse)
      return unusable(entry.name, "mixes dense and sparse updates; put them into files of their own");
    const Result<std::size_t> its_tensor = tensor(entry, *label);
    if (!its_tensor) return its_tensor.error();
    Piece& piece = steps[label->step][*its_tensor];
    std::size_t& slot = label->part == Part::signs ? piece.signs : piece.values;
    if (slot != missing)
      return unusable(entry.name, "stands twice in its step (numbers like 01 and 1 are the same)");
    slot = place;
    return {};
  }

  // Takes tensors without elements out of all steps. Returns the others, which the steps name by their new places.
  std::vector<TensorInfo> drop_empty() {
    std::vector<TensorInfo> counted;
    std::vector<std::size_t> place_of(tensors.size(), missing);
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      if (is_empty(tensor)) continue;
      place_of[tensor] = counted.size();
      counted.push_back(tensors[tensor]);
    }
    for (auto& [number, pieces] : steps) {
      std::map<std::size_t, Piece> kept;
      for (const auto& [tensor, piece] : pieces)
        if (place_of[tensor] != missing) kept.emplace(place_of[tensor], piece);
      pieces = std::move(kept);
    }
    return counted;
  }

  // Pairs must be whole and of one length. A tensor without elements has no entries.
  Result<void> check_pairs() const {
    for (const auto& [number, pieces] : steps) {
      for (const auto& [its_tensor, piece] : pieces) {
        const std::string name = str(number, "/", tensors[its_tensor].name);
        if (piece.values == missing || piece.signs == missing)
          return unusable(name, str("has no .", piece.values == missing ? "index" : "sign", " in this step"));
        if (file.entries()[piece.values].elements() != file.entries()[piece.signs].elements())
          return unusable(name, "has more positions than signs, or fewer");
        if (is_empty(its_tensor) && file.entries()[piece.values].elements() != 0)
          return unusable(name, "has entries, but a shape without elements in the metadata");
      }
    }
    return {};
  }
};

UpdateFile::UpdateFile(SafetensorsFile file, ParamLayout layout, bool dense, std::vector<Step> steps)
    : file_(std::move(file)), layout_(std::move(layout)), dense_(dense), steps_(std::move(steps)) {}

Result<UpdateFile> UpdateFile::read(const std::string& path) {
  Result<SafetensorsFile> file = SafetensorsFile::read(path);
  if (!file) return file.error();
  Result<UpdateFile> updates = of(std::move(file).value());
  if (!updates) return Error{updates.error().code, str(path, ": ", updates.error().text)};
  return updates;
}

Result<UpdateFile> UpdateFile::of(SafetensorsFile file) {
  Collected collected{.file = file};
  for (std::size_t place = 0; place < file.entries().size(); ++place)
    if (Result<void> added = collected.add(place); !added) return added.error();
  if (collected.sparse)
    if (Result<void> whole = collected.check_pairs(); !whole) return whole.error();
  const std::vector<TensorInfo> counted = collected.drop_empty();
  if (counted.empty()) return Error{Errc::corrupt, "the file holds no updates"};
  Result<ParamLayout> layout = ParamLayout::create(counted);
  if (!layout) return layout.error();
  // A place for each tensor in each step; a file may not make that larger than itself by naming each tensor
  // once only.
  if (collected.steps.size() * layout->tensors().size() > 64 * file.entries().size() + 65'536)
    return Error{Errc::limit, "most tensors are missing in most steps; split the file by tensors"};
  std::vector<Step> steps;
  for (const auto& [number, pieces] : collected.steps) {
    Step& step = steps.emplace_back();
    step.number = number;
    step.pieces.resize(layout->tensors().size());
    for (const auto& [tensor, piece] : pieces) step.pieces[tensor] = piece;
  }
  const bool dense = collected.dense;
  return UpdateFile(std::move(file), std::move(layout).value(), dense, std::move(steps));
}

Result<std::vector<float>> UpdateFile::change(std::size_t step) const {
  RUMOR_CHECK(dense_ && step < steps_.size());
  std::vector<float> change(layout_.params(), 0.0f);
  for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
    const std::size_t place = steps_[step].pieces[t].values;
    if (place == missing) continue;
    const Result<std::vector<float>> values = file_.floats(file_.entries()[place]);
    if (!values) return values.error();
    RUMOR_CHECK(values->size() == layout_.tensors()[t].size);
    std::copy(values->begin(), values->end(), change.begin() + layout_.tensors()[t].offset);
  }
  return change;
}

Result<void> UpdateFile::append(const Piece& piece, const TensorInfo& tensor,
                                compress::SparseUpdate& update) const {
  const SafetensorsEntry& entry = file_.entries()[piece.values];
  const Result<std::vector<std::uint32_t>> positions = file_.words(entry);
  if (!positions) return positions.error();
  const Result<Bytes> bytes = file_.all_of(file_.entries()[piece.signs]);
  if (!bytes) return bytes.error();
  const BytesView signs = *bytes;
  std::uint64_t next = 0;
  for (std::size_t e = 0; e < positions->size(); ++e) {
    const std::uint32_t position = (*positions)[e];
    if (position >= tensor.size)
      return unusable(entry.name, str("has position ", position, " at entry ", e, ", beyond its ",
                                      tensor.size, " parameters"));
    if (position < next) return unusable(entry.name, str("does not ascend at entry ", e));
    if (signs[e] > 1)
      return unusable(entry.name, str("has sign ", int{signs[e]}, " at entry ", e, "; 0 and 1 are known"));
    update.index.push_back(tensor.offset + position);
    update.negative.push_back(signs[e]);
    next = std::uint64_t{position} + 1;
  }
  return {};
}

Result<compress::SparseUpdate> UpdateFile::update(std::size_t step) const {
  RUMOR_CHECK(!dense_ && step < steps_.size());
  compress::SparseUpdate update;
  for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
    const Piece& piece = steps_[step].pieces[t];
    if (piece.values == missing) continue;
    if (Result<void> appended = append(piece, layout_.tensors()[t], update); !appended)
      return appended.error();
  }
  update.step = update.index.empty() ? 0 : 1;
  return update;
}

}  // namespace rumor::tools
