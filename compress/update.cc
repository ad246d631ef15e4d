// The payload, in the order of compress/FORMAT.md.
#include "compress/update.h"

#include <algorithm>
#include <bit>
#include <span>

#include "compress/bit_io.h"
#include "compress/rice.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

constexpr unsigned version = 1;
constexpr unsigned version_bits = 3;

// Entries of one tensor, as a range of the update's vectors.
struct Part {
  std::size_t first = 0;
  std::uint32_t count = 0;
};

// Splits the ascending positions at the tensor borders. Requires: all positions inside the layout.
std::vector<Part> split(const ParamLayout& layout, const std::vector<std::uint32_t>& index) {
  std::vector<Part> parts;
  parts.reserve(layout.tensors().size());
  auto at = index.begin();
  for (const TensorInfo& tensor : layout.tensors()) {
    const auto end = std::lower_bound(at, index.end(), tensor.offset + tensor.size);
    parts.push_back({static_cast<std::size_t>(at - index.begin()), static_cast<std::uint32_t>(end - at)});
    at = end;
  }
  RUMOR_CHECK(at == index.end());
  return parts;
}

void put_body(BitWriter& out, const TensorInfo& tensor, std::span<const std::uint32_t> index,
              std::span<const std::uint8_t> negative) {
  const unsigned parameter = rice_parameter(tensor.size, static_cast<std::uint32_t>(index.size()));
  const std::uint32_t mask = (std::uint32_t{1} << parameter) - 1;
  std::uint32_t next = tensor.offset;
  for (std::size_t e = 0; e < index.size(); ++e) {
    RUMOR_CHECK(index[e] >= next && negative[e] <= 1);
    const std::uint64_t field = ((index[e] - next) & mask) | (std::uint64_t{negative[e]} << parameter);
    out.put(field, parameter + 1);
    next = index[e] + 1;
  }
  next = tensor.offset;
  for (const std::uint32_t position : index) {
    out.put_unary((position - next) >> parameter);
    next = position + 1;
  }
}

// Errors carry the byte at which reading stopped.
Error damaged(const char* what, std::uint64_t bit) {
  return Error{Errc::corrupt, str("update payload is damaged at byte ", 1 + bit / 8, ": ", what)};
}

// The counts, proven possible: none above its tensor's size, not all zero, and room in the stream for all
// entries.
Result<std::vector<std::uint32_t>> take_counts(BitReader& in, const ParamLayout& layout) {
  const std::vector<TensorInfo>& tensors = layout.tensors();
  if (in.remaining() < tensors.size()) return damaged("too short for the model's tensors", in.position());
  std::vector<std::uint32_t> counts;
  counts.reserve(tensors.size());
  std::uint64_t bits_needed = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::int64_t low_bits = in.take_unary();
    if (low_bits < 0 || low_bits > 31) return damaged("an entry count is malformed", in.position());
    const std::uint64_t low = in.take(static_cast<unsigned>(low_bits));
    const std::uint64_t count = (std::uint64_t{1} << low_bits) + low - 1;
    if (count > tensor.size) return damaged("more entries than the tensor has parameters", in.position());
    counts.push_back(static_cast<std::uint32_t>(count));
    bits_needed += rice_bits_min(tensor.size, counts.back());
  }
  if (bits_needed == 0) return damaged("a step without entries", in.position());
  if (bits_needed > in.remaining()) return damaged("too short for its entry counts", in.position());
  return counts;
}

// Appends the entries of one tensor; false when they do not fit the tensor or the stream.
// The caller has proven only the sum of the smallest lengths, so the fields are checked again here.
bool take_body(BitReader& in, const TensorInfo& tensor, std::uint32_t count, SparseUpdate& out) {
  const unsigned parameter = rice_parameter(tensor.size, count);
  const std::uint64_t field_bits = std::uint64_t{count} * (parameter + 1);
  if (field_bits > in.remaining()) return false;
  const std::uint64_t quotients_at = in.position() + field_bits;
  const std::uint64_t quotient_max = tensor.size >> parameter;
  const std::uint64_t mask = (std::uint64_t{1} << parameter) - 1;
  OneBits ones(in, quotients_at);
  std::uint64_t previous_one = quotients_at - 1;
  std::uint64_t next = 0;
  for (std::uint32_t e = 0; e < count; ++e) {
    const std::uint64_t one = ones.next();
    const std::uint64_t quotient = one - previous_one - 1;  // huge when there is no one bit left
    const std::uint64_t field = in.take(parameter + 1);
    const std::uint64_t position = next + ((quotient << parameter) | (field & mask));
    if (quotient > quotient_max || position >= tensor.size) return false;
    out.index.push_back(tensor.offset + static_cast<std::uint32_t>(position));
    out.negative.push_back(static_cast<std::uint8_t>(field >> parameter));
    previous_one = one;
    next = position + 1;
  }
  in.skip(previous_one + 1 - in.position());
  return true;
}

}  // namespace

Bytes encode(const ParamLayout& layout, const SparseUpdate& update) {
  RUMOR_CHECK(update.index.size() == update.negative.size());
  RUMOR_CHECK((update.step > 0) == !update.index.empty() && update.step >= 0);
  const std::uint32_t step = static_cast<std::uint32_t>(update.step);
  const unsigned width = static_cast<unsigned>(std::bit_width(step));
  Bytes head{static_cast<std::uint8_t>(version | (width << version_bits))};
  if (width == 0) return head;
  BitWriter out(std::move(head));
  out.put(step ^ (std::uint32_t{1} << (width - 1)), width - 1);
  const std::vector<Part> parts = split(layout, update.index);
  for (const Part& part : parts) out.put_gamma(std::uint64_t{part.count} + 1);
  const std::span<const std::uint32_t> index(update.index);
  const std::span<const std::uint8_t> negative(update.negative);
  for (std::size_t t = 0; t < parts.size(); ++t) {
    const auto [first, count] = parts[t];
    if (count > 0)
      put_body(out, layout.tensors()[t], index.subspan(first, count), negative.subspan(first, count));
  }
  return out.take();
}

Result<SparseUpdate> decode(const ParamLayout& layout, BytesView payload) {
  if (payload.empty()) return Error{Errc::corrupt, "update payload is empty; the shortest has one byte"};
  if ((payload[0] & ((1u << version_bits) - 1)) != version)
    return Error{Errc::corrupt, str("update payload has version ", payload[0] & 7, ", this program knows ",
                                    version, "; it is damaged or its sender is newer")};
  const unsigned width = payload[0] >> version_bits;
  SparseUpdate update;
  BitReader in(payload.subspan(1));
  if (width == 0) {
    if (payload.size() > 1) return damaged("bytes after an empty update", 0);
    return update;
  }
  if (in.remaining() < width) return damaged("it ends inside the step", 0);
  update.step = static_cast<std::int32_t>((std::uint32_t{1} << (width - 1)) | in.take(width - 1));
  const Result<std::vector<std::uint32_t>> counts = take_counts(in, layout);
  if (!counts) return counts.error();
  std::size_t entries = 0;
  for (const std::uint32_t count : *counts) entries += count;
  update.index.reserve(entries);
  update.negative.reserve(entries);
  for (std::size_t t = 0; t < counts->size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    if ((*counts)[t] > 0 && !take_body(in, tensor, (*counts)[t], update))
      return damaged("an entry lies outside its tensor or past the end", in.position());
  }
  if (in.remaining() >= 8) return damaged("bytes after the last entry", in.position());
  if (in.take(static_cast<unsigned>(in.remaining())) != 0)
    return damaged("filling bits are not zero", in.position());
  return update;
}

}  // namespace rumor::compress
