#include "runtime/training/outside/buffer_means.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/weights/float_formats.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/training/outside/outside_tensors.h"

namespace rumor {

namespace {

using Type = SharedBuffer::Type;

struct TypeRow {
  Type type;
  const char* name;
  std::size_t bytes;
};
constexpr TypeRow types[] = {{Type::f32, "F32", 4}, {Type::f64, "F64", 8}, {Type::bf16, "BF16", 2},
                             {Type::i32, "I32", 4}, {Type::i64, "I64", 8}, {Type::f16, "F16", 2}};

bool is_integer(Type type) { return type == Type::i32 || type == Type::i64; }

// Bytes of a value in a report.
std::size_t said_width(Type type) {
  return type == Type::f32 || type == Type::bf16 || type == Type::f16 ? 4 : 8;
}

std::size_t said_bytes(const SharedBuffer& buffer) { return buffer.count * said_width(buffer.type); }

template <class Value>
Value load(const std::uint8_t* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class Value>
void store(Value value, std::uint8_t* at) {
  std::memcpy(at, &value, sizeof value);
}

float read_half(const std::uint8_t* at) {
  float value = 0;
  models::read_floats(models::FloatFormat::f16, {at, 2}, 0, 1, {&value, 1});
  return value;
}

// The value as a report has it: of a float the bits, of an integer itself.
void write_value(Type type, const std::uint8_t* at, ByteWriter& out) {
  switch (type) {
    case Type::f32: return out.u32(load<std::uint32_t>(at));
    case Type::f64: return out.u64(load<std::uint64_t>(at));
    case Type::bf16: return out.u32(std::uint32_t{load<std::uint16_t>(at)} << 16);
    case Type::f16: return out.u32(std::bit_cast<std::uint32_t>(read_half(at)));
    case Type::i32: return out.u64(static_cast<std::uint64_t>(std::int64_t{load<std::int32_t>(at)}));
    case Type::i64: return out.u64(load<std::uint64_t>(at));
  }
}

void store_float(Type type, double value, std::uint8_t* at) {
  const auto narrow = static_cast<float>(value);
  if (type == Type::f64) return store(value, at);
  if (type == Type::bf16) return store(Bfloat::word(narrow), at);
  if (type == Type::f16) return store(models::f16_of(narrow), at);
  store(narrow, at);
}

void store_integer(Type type, std::int64_t value, std::uint8_t* at) {
  if (type == Type::i64) return store(value, at);
  store(static_cast<std::int32_t>(std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX)), at);
}

// `said`: the values of the buffer in each report.
void show_greatest(const SharedBuffer& buffer, const std::vector<const std::uint8_t*>& said, std::uint8_t* to) {
  const std::size_t width = buffer.bytes() / buffer.count;
  for (std::size_t i = 0; i < buffer.count; ++i) {
    std::int64_t greatest = INT64_MIN;
    for (const std::uint8_t* values : said)
      greatest = std::max(greatest, static_cast<std::int64_t>(ByteReader({values + i * 8, 8}).u64()));
    store_integer(buffer.type, greatest, to + i * width);
  }
}

double said_float(Type type, const std::uint8_t* at) {
  ByteReader in({at, said_width(type)});
  return type == Type::f64 ? std::bit_cast<double>(in.u64()) : double{std::bit_cast<float>(in.u32())};
}

// A value that is not finite does not count. Equal values stay as they are: their sum might be rounded.
void show_mean(const SharedBuffer& buffer, const std::vector<const std::uint8_t*>& said, std::uint8_t* to) {
  const std::size_t width = buffer.bytes() / buffer.count;
  for (std::size_t i = 0; i < buffer.count; ++i) {
    double sum = 0, first = 0;
    std::size_t count = 0;
    bool equal = true;
    for (const std::uint8_t* values : said) {
      const double value = said_float(buffer.type, values + i * said_width(buffer.type));
      if (!std::isfinite(value)) continue;
      if (count++ == 0) first = value;
      equal = equal && value == first;
      sum += value;
    }
    if (count > 0) store_float(buffer.type, equal ? first : sum / static_cast<double>(count), to + i * width);
  }
}

}  // namespace

Result<Type> SharedBuffer::type_of(const std::string& name) {
  for (const TypeRow& row : types)
    if (name == row.name) return row.type;
  return Error{Errc::usage, str("a buffer of type ", name, " cannot be shared")};
}

std::size_t SharedBuffer::bytes() const {
  for (const TypeRow& row : types)
    if (row.type == type) return count * row.bytes;
  return 0;
}

Result<BufferMeans> BufferMeans::create(std::vector<SharedBuffer> buffers, BytesView local) {
  BufferMeans means;
  ByteWriter form;
  std::size_t bytes = sizeof means.form_;
  for (const SharedBuffer& one : buffers) {
    RUMOR_CHECK(one.at <= local.size() && one.bytes() <= local.size() - one.at);
    form.text(one.name);
    form.u8(static_cast<std::uint8_t>(one.type));
    form.u64(one.count);
    bytes += 1 + said_bytes(one);
  }
  if (bytes > limits::buffers_bytes_max)
    return Error{Errc::limit, str("the model's buffers have ", bytes, " bytes, and ", limits::buffers_bytes_max,
                                  " can be shared: leave the large ones out")};
  means.form_ = ByteReader(sha256(form.bytes()).view()).u64();
  means.buffers_ = std::move(buffers);
  means.begin_at(local);
  return means;
}

void BufferMeans::begin_at(BytesView local) {
  before_.clear();
  for (const SharedBuffer& one : buffers_) {
    const BytesView now = local.subspan(one.at, one.bytes());
    before_.insert(before_.end(), now.begin(), now.end());
  }
}

Bytes BufferMeans::report(BytesView local) const {
  ByteWriter out;
  out.u64(form_);
  bool any = false;
  const std::uint8_t* before = before_.data();
  for (const SharedBuffer& one : buffers_) {
    const std::uint8_t* const now = local.data() + one.at;
    const bool changed = !std::equal(now, now + one.bytes(), before);
    before += one.bytes();
    out.u8(changed ? 1 : 0);
    any |= changed;
    if (!changed) continue;
    const std::size_t width = one.bytes() / one.count;
    for (std::size_t i = 0; i < one.count; ++i) write_value(one.type, now + i * width, out);
  }
  return any ? out.take() : Bytes();
}

bool BufferMeans::fits(BytesView report) const {
  ByteReader in(report);
  return in.u64() == form_ && !in.failed();
}

bool BufferMeans::read(BytesView bytes, Report& report) const {
  ByteReader in(bytes);
  if (in.u64() != form_) return false;
  for (const SharedBuffer& one : buffers_)
    report.values.push_back(in.u8() == 0 ? nullptr : in.raw(said_bytes(one)).data());
  return in.done();
}

void BufferMeans::show(const NodeBuffers& reports, Bytes& local) const {
  std::vector<std::pair<std::uint64_t, Report>> read_ones;
  std::uint64_t newest = 0;
  for (const auto& [node, said] : reports) {
    Report report;
    if (!read(said.values, report)) continue;
    newest = std::max(newest, said.progress);
    read_ones.emplace_back(said.progress, std::move(report));
  }
  std::erase_if(read_ones, [&](const auto& one) { return one.first < newest - newest / 4; });
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    std::vector<const std::uint8_t*> said;
    for (const auto& [progress, report] : read_ones)
      if (report.values[b] != nullptr) said.push_back(report.values[b]);
    if (said.empty()) continue;
    if (is_integer(buffers_[b].type))
      show_greatest(buffers_[b], said, local.data() + buffers_[b].at);
    else
      show_mean(buffers_[b], said, local.data() + buffers_[b].at);
  }
}

}  // namespace rumor
