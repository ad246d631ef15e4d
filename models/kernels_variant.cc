// The table of one instruction set, and the kernels that are plain loops: the compiler makes vectors of them.
// Compiled once per instruction set (models/kernel_lanes.h): no std headers here. -ffp-contract=off keeps a *
// b + c two roundings at every level.
#include "models/kernel_lanes.h"
#include "models/kernel_table.h"

namespace rumor::models::KERNEL_NAMESPACE {

// models/kernels_matmul.cc
void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
            long y_row, Start start);
void matmul_gathered(long rows, long columns, long depth, GatheredView a, const float* b, long b_row,
                     float* y, long y_row, Start start);

namespace {

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

void transpose(long rows, long columns, const float* x, float* y) {
  constexpr long tile = 8;
  const long full_rows = rows / tile * tile, full_columns = columns / tile * tile;
  for (long c = 0; c < full_columns; c += tile) {
    for (long r = 0; r < full_rows; r += tile)
      transpose_tile(x + r * columns + c, columns, y + c * rows + r, rows);
  }
  for (long c = 0; c < columns; ++c) {
    for (long r = c < full_columns ? full_rows : 0; r < rows; ++r) y[c * rows + r] = x[r * columns + c];
  }
}

void relu(long count, float* x) {
  for (long i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(long count, const float* activation, float* change) {
  for (long i = 0; i < count; ++i) change[i] = activation[i] > 0 ? change[i] : 0;
}

void add(long count, const float* x, float* y) {
  for (long i = 0; i < count; ++i) y[i] = y[i] + x[i];
}

void centred_dots(long rows, long columns, const float* __restrict x, const float* x_centre, const float* y,
                  const float* y_centre, float* __restrict sum) {
  for (long c = 0; c < columns; ++c) sum[c] = 0;
  for (long r = 0; r < rows; ++r, x += columns, y += columns) {
    for (long c = 0; c < columns; ++c) sum[c] = sum[c] + (x[c] - x_centre[c]) * (y[c] - y_centre[c]);
  }
}

void scale_columns(long rows, long columns, const float* x, const float* scale, const float* shift,
                   float* y) {
  for (long r = 0; r < rows; ++r, x += columns, y += columns) {
    for (long c = 0; c < columns; ++c) y[c] = x[c] * scale[c] + shift[c];
  }
}

void blend_columns(long rows, long columns, const float* x, const float* x_scale, const float* shift,
                   const float* y_scale, float* y) {
  for (long r = 0; r < rows; ++r, x += columns, y += columns) {
    for (long c = 0; c < columns; ++c) y[c] = y[c] * y_scale[c] + (x[c] * x_scale[c] + shift[c]);
  }
}

inline float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

void max_pool(long height, long width, long channels, const float* x, float* y) {
  for (long row = 0; row + 1 < height; row += 2) {
    for (long column = 0; column + 1 < width; column += 2, y += channels) {
      const float* a = x + (row * width + column) * channels;
      const float *b = a + channels, *c = a + width * channels, *d = c + channels;
      for (long i = 0; i < channels; ++i) y[i] = larger(larger(larger(a[i], b[i]), c[i]), d[i]);
    }
  }
}

void max_pool_backward(long height, long width, long channels, const float* x, const float* change_y,
                       float* __restrict change_x) {
  for (long i = 0; i < height * width * channels; ++i) change_x[i] = 0;
  for (long row = 0; row + 1 < height; row += 2) {
    for (long column = 0; column + 1 < width; column += 2, change_y += channels) {
      const long at = (row * width + column) * channels, below = at + width * channels;
      const float *a = x + at, *b = a + channels, *c = x + below, *d = c + channels;
      float* __restrict to_a = change_x + at;
      float* __restrict to_b = to_a + channels;
      float* __restrict to_c = change_x + below;
      float* __restrict to_d = to_c + channels;
      for (long i = 0; i < channels; ++i) {
        const float most = larger(larger(larger(a[i], b[i]), c[i]), d[i]);
        float left = change_y[i];  // to be given away
        to_a[i] = a[i] == most ? left : 0;
        left = a[i] == most ? 0 : left;
        to_b[i] = b[i] == most ? left : 0;
        left = b[i] == most ? 0 : left;
        to_c[i] = c[i] == most ? left : 0;
        to_d[i] = c[i] == most ? 0 : left;
      }
    }
  }
}

void normalise(long count, const unsigned char* bytes, float mean, float scale, float* y) {
  for (long i = 0; i < count; ++i) y[i] = (static_cast<float>(bytes[i]) - mean) * scale;
}

}  // namespace

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
extern const SequenceKernels sequence_table;
extern const KernelTable table;
const KernelTable table = {TEXT(KERNEL_NAMESPACE),
                           matmul,
                           matmul_gathered,
                           transpose,
                           relu,
                           relu_backward,
                           add,
                           centred_dots,
                           scale_columns,
                           blend_columns,
                           max_pool,
                           max_pool_backward,
                           normalise,
                           &sequence_table};

}  // namespace rumor::models::KERNEL_NAMESPACE
