// Transposing, for the kernel sources of every instruction set (models/kernels/kernel_lanes.h). Moves floats,
// computes nothing.
#pragma once

#include "models/kernels/kernel_lanes.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {
namespace lanes {

#if KERNEL_LEVEL > 0
// y[c][r] = x[r][c] for 8 x 8, in registers: pairs, then fours, then halves change places.
LANES_INLINE void transpose_tile(const float* x, long x_row, float* y, long y_row) {
  __m256 a[8], b[8];
  LANES_UNROLL for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(x + i * x_row);
  LANES_UNROLL for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  LANES_UNROLL for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  LANES_UNROLL for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(y + i * y_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(y + (i + 4) * y_row, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}
#else
LANES_INLINE void transpose_tile(const float* x, long x_row, float* y, long y_row) {
  for (long c = 0; c < 8; ++c) {
    for (long r = 0; r < 8; ++r) y[c * y_row + r] = x[r * x_row + c];
  }
}
#endif

// y[c][r] = x[r][c], rows x_row and y_row floats apart. It takes two tiles side by side at a time, so that a cache line
// is read once, however many rows map to its set.
LANES_INLINE void transpose_matrix(long rows, long columns, const float* x, long x_row, float* y,
                                   long y_row) {
  constexpr long tile = 8;
  const long full_rows = rows / tile * tile, full_columns = columns / tile * tile;
  for (long c = 0; c < full_columns; c += 2 * tile) {
    const long end = c + 2 * tile < full_columns ? c + 2 * tile : full_columns;
    for (long r = 0; r < full_rows; r += tile) {
      for (long at = c; at < end; at += tile)
        transpose_tile(x + r * x_row + at, x_row, y + at * y_row + r, y_row);
    }
  }
  for (long c = 0; c < columns; ++c) {
    for (long r = c < full_columns ? full_rows : 0; r < rows; ++r) y[c * y_row + r] = x[r * x_row + c];
  }
}

}  // namespace lanes
}  // namespace
}  // namespace rumor::models::KERNEL_NAMESPACE
