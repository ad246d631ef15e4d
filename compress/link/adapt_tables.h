// Fixed tables of the ADAPT coder (compress/ADAPT.md, chapters 4 and 8): the position of the first of n randomly
// sampled cells, as a curve of 64 straight pieces for each n, and the rates at which frequencies learn.
//
// All in whole numbers by the rules of the text, so every machine builds the same ones.
//
// Thread: constants.
#pragma once

#include <array>
#include <cstdint>

namespace rumor::compress {

// Frequencies are in units of 2^-27.
inline constexpr unsigned scale_bits = 27;
inline constexpr std::uint32_t scale = std::uint32_t{1} << scale_bits;

// The most cells (rows, or columns of a row) of a set.
inline constexpr std::uint32_t cells_max = 32768;

// The part of the scale that the curves distribute. The rest gives every cell a frequency of at least 2.
inline constexpr std::uint32_t curve_scale = scale - 2 * cells_max;

// Curves for n = 1 to 32, and one for all n above.
inline constexpr std::uint32_t curves = 33;
inline constexpr std::uint32_t curve_pieces = 64;
inline constexpr unsigned piece_bits = 18;  // a piece has 2^18 steps, the curve 2^24
inline constexpr std::uint32_t curve_steps = curve_pieces << piece_bits;
inline constexpr std::uint32_t reach = 10;  // the curve of n > 10 ends where n times the share passed is 10

// The curve has curve_steps where the weight that is left, shared by max(n, reach) members, has been passed
// by `reach` of them: 2^16 times the steps for each member and unit of weight.
inline constexpr std::uint64_t curve_share = (std::uint64_t{curve_steps} << 16) / reach;

// 1 - (1 - share)^n, scaled, with tables that find its inverse quickly.
struct Curve {
  static constexpr unsigned slot_bits = 8;  // of a slot, the upper ones, say which chord

  // Where a piece begins, and how far it rises; after the last one there is a flat one.
  struct Piece {
    std::uint32_t height, rise;
  };
  std::array<Piece, curve_pieces + 1> pieces{};
  // For the curve of n <= 32: steps per unit of the weight that all members share, times 2^16, and 2^63 divided
  // by it.
  double all = 0;
  std::uint64_t share = 0;
  // The inverse at 257 slots, in steps. Between two of them it is taken for straight, which is close, not
  // exact.
  std::array<std::uint32_t, (1 << slot_bits) + 1> chords{};
};

// The curve of n is element min(n, 33) - 1. Ready before main() begins.
extern const std::array<Curve, curves> curve_table;

// 65536 / (i + 5): the step of a frequency that has been used i times.
inline constexpr std::uint32_t rates = 252;
extern const std::array<std::uint32_t, rates> learning_rate;

}  // namespace rumor::compress
