// The Rice parameter by rule, and what an entry costs with it (compress/FORMAT.md 4.4, 4.5).
//
// A gap g is coded as g mod 2^K in K bits and floor(g / 2^K) in unary; one sign bit goes with it. K follows
// from the size of the tensor and its number of entries, in whole numbers, so that every machine finds the
// same one. Source: Rice, Plaunt 1971; the best parameter for geometric gaps: Kiely 2004 (golden ratio).
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <span>

namespace rumor::compress {

// Requires: 1 <= count <= size < 2^31. At most 30.
inline unsigned rice_parameter(std::uint32_t size, std::uint32_t count) {
  const std::uint64_t wanted = 77 * (2 * std::uint64_t{size} - count);
  std::uint64_t reached = 320 * std::uint64_t{count};
  unsigned parameter = 0;
  for (; reached < wanted; reached <<= 1) ++parameter;
  return parameter;
}

// Fewest bits `count` entries can take: fields and one bit of quotient each.
inline std::uint64_t rice_bits_min(std::uint32_t size, std::uint32_t count) {
  return count == 0 ? 0 : std::uint64_t{count} * (rice_parameter(size, count) + 2);
}

// Bits of fields and quotients for these ascending positions, the first counted from `offset`.
inline std::uint64_t rice_bits(std::span<const std::uint32_t> positions, std::uint32_t offset,
                               unsigned parameter) {
  std::uint64_t bits = positions.size() * (std::uint64_t{parameter} + 2);
  std::uint32_t next = offset;
  for (const std::uint32_t position : positions) {
    bits += (position - next) >> parameter;
    next = position + 1;
  }
  return bits;
}

// Bits of the gamma code of count + 1.
inline unsigned count_bits(std::uint32_t count) {
  unsigned low_bits = 0;
  while ((std::uint64_t{count} + 1) >> (low_bits + 1)) ++low_bits;
  return 2 * low_bits + 1;
}

}  // namespace rumor::compress
