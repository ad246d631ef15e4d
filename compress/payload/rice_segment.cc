#include "compress/payload/rice_segment.h"

#include <algorithm>
#include <cstring>

#include "compress/payload/four_lanes.h"
#include "compress/payload/rice.h"
#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// Ascending, inside the part, signs 0 or 1. Without branches, and many at a time whatever the compiler makes
// of loops: it runs before every encoding. Positions end below 2^31, so that signed comparisons do.
bool fits(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative) {
  Four descends{};
  std::uint64_t signs = 0;
  std::uint32_t e = 1;
  for (; e + 4 <= part.count; e += 4) descends |= four_at(index + e) <= four_at(index + e - 1);
  unsigned wrong = lanes_in(descends);
  for (; e < part.count; ++e) wrong |= index[e] <= index[e - 1] ? 1 : 0;
  for (e = 0; e + 8 <= part.count; e += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, negative + e, sizeof eight);
    signs |= eight;
  }
  for (; e < part.count; ++e) signs |= negative[e];
  return wrong == 0 && (signs & ~0x0101'0101'0101'0101u) == 0 && index[0] - part.first < part.span &&
         index[part.count - 1] - part.first < part.span;
}

}  // namespace

RicePart rice_part(const ParamLayout& layout, const Part& part) {
  const std::uint32_t span = part.end - part.begin;
  const RiceCode code = rice_code(span, part.count);
  return {layout.tensors()[part.tensor].offset + part.begin, span, part.count, code.low_bits, code.thirds};
}

std::uint64_t rice_body_bits_max(std::span<const Part> parts) {
  std::uint64_t bits = 0;
  for (const Part& part : parts) bits += rice_bits_max(part.end - part.begin, part.count);
  return bits;
}

std::uint64_t rice_encode(const ParamLayout& layout, std::span<const Part> parts, const std::uint32_t* index,
                          const std::uint8_t* negative, std::uint8_t* out, std::uint64_t at,
                          const RiceKernels& kernels) {
  for (const Part& part : parts) {
    const RicePart piece = rice_part(layout, part);
    RUMOR_CHECK(fits(piece, index, negative));
    at = kernels.encode(piece, index, negative, out, at);
    index += part.count;
    negative += part.count;
  }
  return at;
}

bool rice_decode(const ParamLayout& layout, std::span<const Part> parts, BytesView body, std::uint64_t at,
                 std::uint32_t* index, std::uint8_t* negative, const RiceKernels& kernels) {
  const std::uint64_t end = std::uint64_t{8} * body.size();
  for (const Part& part : parts) {
    const RicePart piece = rice_part(layout, part);
    at = kernels.decode(piece, body.data(), at, end, index, negative);
    if (at == 0) return false;
    index += part.count;
    negative += part.count;
    const bool another_follows = part.end < layout.tensors()[part.tensor].size;
    if (another_follows && index[-1] != piece.first + piece.span - 1) return false;
  }
  return end - at < 8 && (end == at || (body.back() >> (at & 7)) == 0);
}

bool rice_decode_within(const ParamLayout& layout, std::span<const Part> parts, BytesView message,
                        std::uint64_t first_byte, std::uint64_t bytes, std::uint64_t at, std::uint32_t* index,
                        std::uint8_t* negative, const RiceKernels& kernels) {
  const BytesView body = message.subspan(first_byte, bytes);
  if (message.size() - first_byte - bytes >= rice_slack_bytes)
    return rice_decode(layout, parts, body, at, index, negative, kernels);
  Bytes padded(body.size() + rice_slack_bytes, 0);
  std::copy(body.begin(), body.end(), padded.begin());
  return rice_decode(layout, parts, BytesView(padded).first(body.size()), at, index, negative, kernels);
}

}  // namespace rumor::compress
