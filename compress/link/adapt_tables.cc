#include "compress/link/adapt_tables.h"

#include <algorithm>

namespace rumor::compress {
namespace {

constexpr std::uint64_t fixed_one = std::uint64_t{1} << 32;
constexpr std::uint64_t fall = 3673680207;  // 2^32 times e^(-10/64), rounded down

// 2^32 (1 - share)^n at the beginning of a piece.
std::uint64_t remaining(std::uint32_t left, std::uint32_t piece) {
  std::uint64_t product = fixed_one;
  if (left > 32) {
    for (std::uint32_t i = 0; i < piece; ++i) product = product * fall >> 32;
    return product;
  }
  const std::uint64_t ends = left < reach ? left : reach;
  const std::uint64_t factor = fixed_one - (fixed_one * piece * ends) / (64 * left);
  for (std::uint32_t i = 0; i < left; ++i) {
    // factor is 2^32 only at the beginning, where the product is that too.
    product = factor == fixed_one ? fixed_one : product * factor >> 32;
  }
  return product;
}

Curve curve(std::uint32_t left) {
  Curve made;
  const auto height = [&](std::uint32_t piece) {
    return static_cast<std::uint32_t>(curve_scale * (fixed_one - remaining(left, piece)) >> 32);
  };
  for (std::uint32_t piece = 0; piece < curve_pieces; ++piece)
    made.pieces[piece] = {height(piece), height(piece + 1) - height(piece)};
  made.pieces[curve_pieces] = {height(curve_pieces), 0};
  made.all = static_cast<double>(std::max(left, reach) * curve_share);
  made.share = static_cast<std::uint64_t>(0x1p63 / made.all);
  std::uint32_t piece = 0;
  for (std::uint32_t i = 0; i < made.chords.size(); ++i) {
    const std::uint32_t slot = i << (scale_bits - Curve::slot_bits);
    while (piece < curve_pieces && made.pieces[piece + 1].height <= slot) ++piece;
    const auto [from, rise] = made.pieces[piece];
    const std::uint64_t inside = rise == 0 ? 0 : (std::uint64_t{slot - from} << piece_bits) / rise;
    made.chords[i] = (piece << piece_bits) + static_cast<std::uint32_t>(inside);
  }
  return made;
}

std::array<Curve, curves> all_curves() {
  std::array<Curve, curves> made;
  for (std::uint32_t i = 0; i < curves; ++i) made[i] = curve(i + 1);
  return made;
}

constexpr std::array<std::uint32_t, rates> all_rates() {
  std::array<std::uint32_t, rates> made{};
  for (std::uint32_t i = 0; i < rates; ++i) made[i] = 65536 / (i + 5);
  return made;
}

}  // namespace

const std::array<Curve, curves> curve_table = all_curves();
const std::array<std::uint32_t, rates> learning_rate = all_rates();

}  // namespace rumor::compress
