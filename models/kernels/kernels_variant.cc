// The table of one instruction set, and the kernels that are plain loops: the compiler makes vectors of them.
// Compiled once per instruction set (models/kernels/kernel_lanes.h): no std headers here. -ffp-contract=off keeps a *
// b + c two roundings at every level.
#include "models/kernels/kernel_lanes.h"
#include "models/kernels/kernel_table.h"
#include "models/kernels/transpose_lanes.h"

namespace rumor::models::KERNEL_NAMESPACE {

// models/kernels/kernels_matmul.cc
void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
            long y_row, Start start);
void matmul_gathered(long rows, long columns, long depth, GatheredView a, const float* b, long b_row,
                     float* y, long y_row, Start start);

namespace {

void transpose(long rows, long columns, const float* x, long x_row, float* y, long y_row) {
  lanes::transpose_matrix(rows, columns, x, x_row, y, y_row);
}

void relu(long count, float* x) {
  for (long i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(long count, const float* activation, float* change) {
  for (long i = 0; i < count; ++i) change[i] = activation[i] > 0 ? change[i] : 0;
}

void axpy(long count, float a, const float* x, float* y) {
  const lanes::Lanes factor = lanes::splat(a);
  lanes::each(count, [&](auto v, long i) { v.store(y + i, lanes::fma(factor, v.load(x + i), v.load(y + i))); });
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
extern const RecurrentKernels recurrent_table;
extern const KernelTable table;
const KernelTable table = {TEXT(KERNEL_NAMESPACE),
                           matmul,
                           matmul_gathered,
                           transpose,
                           relu,
                           relu_backward,
                           axpy,
                           centred_dots,
                           scale_columns,
                           blend_columns,
                           max_pool,
                           max_pool_backward,
                           normalise,
                           &sequence_table,
                           &recurrent_table};

}  // namespace rumor::models::KERNEL_NAMESPACE
