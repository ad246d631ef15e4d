// The range of the integer grid that weights live on, and the two marks before its end.
//
// A weight is a 32-bit integer in units of 2^-grid_bits, and addition wraps around: behind the largest weight comes the
// least. No peer makes an update that takes a weight beyond range_guarded (compress/select/range_guard.h). The rest of
// the range is for updates that other peers make at the same time. A replica that finds a weight beyond range_end all
// the same ends the run (runtime/replica/replica.h): every peer that holds the same updates finds it.
//
// Thread: plain functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "runtime/base/param_layout.h"
#include "runtime/base/text.h"

namespace rumor {

inline constexpr std::int32_t range_guarded = 0x6000'0000;  // three quarters of 2^31
inline constexpr std::int32_t range_end = 0x7000'0000;      // seven eighths
inline constexpr int grid_bits_min = 8;

// Where the grid ends, in weight units.
inline double range_of(int grid_bits) { return std::ldexp(1.0, 31 - grid_bits); }

// The finest grid, at most `finest`, whose range is at least 8 times the largest weight, or grid_bits_min.
inline int grid_bits_for(double largest_weight, int finest) {
  int bits = finest;
  while (bits > grid_bits_min && range_of(bits) < 8 * largest_weight) --bits;
  return bits;
}

// A sentence for people: which weight, its value, where the grid ends, and the key that moves the end.
inline std::string range_end_text(const ParamLayout& layout, std::uint32_t position, double value, int grid_bits) {
  const TensorInfo& tensor = layout.tensor_at(position);
  const int wider = std::max(grid_bits - 2, grid_bits_min);
  return str("weight ", position - tensor.offset, " of tensor ", tensor.name, " has reached ", fixed(value, 2),
             ", and the weights' grid ends at ", fixed(range_of(grid_bits), 0), ": start the run anew with ",
             "compress.grid_bits = ", wider, ", which ends at ", fixed(range_of(wider), 0));
}

}  // namespace rumor
