// The divisor of the RICE form by rule, and the cost of entries with it (compress/FORMAT.md 4.6).
//
// A gap g is coded by a divisor M: floor(g / M) in unary, the rest in nearly fixed width. If M is 2^b, the rest takes b
// bits. If M is 3 * 2^b, it takes b bits and a choice of three that takes 1 or 2 more. M follows from the span and the
// number of entries, in whole numbers, so every machine finds the same M.
// Sources: Golomb 1966 and Rice, Plaunt 1971 (the code); Gallager, Van Voorhis 1975 (M is best for ratio r where
// r^M + r^(M+1) = 1 is passed, which gives the three constants below).
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <span>

namespace rumor::compress {

struct RiceCode {
  unsigned low_bits = 0;  // b, at most 30
  bool thirds = false;    // M is 3 * 2^b, else 2^b
  bool operator==(const RiceCode&) const = default;

  std::uint64_t divisor() const { return std::uint64_t{thirds ? 3u : 1u} << low_bits; }
  // Fewest bits of one entry: low bits, sign, the last bit of its quotient, and whether its third is not 0.
  unsigned entry_bits_min() const { return low_bits + 2 + (thirds ? 1 : 0); }
};

// Requires: 1 <= count <= span < 2^31.
inline RiceCode rice_code(std::uint32_t span, std::uint32_t count) {
  const std::uint64_t k = count, places = 2 * std::uint64_t{span} - count;
  if (320 * k >= 77 * places) return {0, false};
  for (unsigned b = 0;; ++b) {  // M = 2 * 2^b, then 3 * 2^b
    if (64 * (k << b) >= 9 * places) return {b + 1, false};
    if (10 * (k << b) >= places) return {b, true};
  }
}

// Fewest bits that `count` entries in `span` positions can take.
inline std::uint64_t rice_bits_min(std::uint32_t span, std::uint32_t count) {
  return count == 0 ? 0 : std::uint64_t{count} * rice_code(span, count).entry_bits_min();
}

// Most bits that they can take.
inline std::uint64_t rice_bits_max(std::uint32_t span, std::uint32_t count) {
  if (count == 0) return 0;
  const RiceCode code = rice_code(span, count);
  return std::uint64_t{count} * (code.entry_bits_min() + (code.thirds ? 1 : 0)) +
         (span - count) / code.divisor();
}

// Bits that these ascending positions take, the first gap counted from `begin`.
inline std::uint64_t rice_bits(std::span<const std::uint32_t> positions, std::uint32_t begin, RiceCode code) {
  std::uint64_t bits = positions.size() * std::uint64_t{code.entry_bits_min()};
  std::uint32_t next = begin;
  for (const std::uint32_t position : positions) {
    const std::uint32_t high = (position - next) >> code.low_bits;
    bits += code.thirds ? high / 3 + (high % 3 != 0) : high;
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
