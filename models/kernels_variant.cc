// The table of one instruction set, and the kernels that are plain loops: the compiler makes vectors of them. Compiled
// once per instruction set (models/kernel_lanes.h): no std headers here.
#include "models/kernel_table.h"

namespace rumor::models::KERNEL_NAMESPACE {

// models/kernels_matmul.cc
void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y, long y_row,
            Start start);
void matmul_gathered(long rows, long columns, long depth, GatheredView a, const float* b, long b_row, float* y,
                     long y_row, Start start);

namespace {

void transpose(long rows, long columns, const float* x, float* y) {
  constexpr long tile = 16;
  for (long r0 = 0; r0 < rows; r0 += tile) {
    const long r1 = r0 + tile < rows ? r0 + tile : rows;
    for (long c = 0; c < columns; ++c) {
      for (long r = r0; r < r1; ++r) y[c * rows + r] = x[r * columns + c];
    }
  }
}

void relu(long count, float* x) {
  for (long i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(long count, const float* activation, float* change) {
  for (long i = 0; i < count; ++i) change[i] = activation[i] > 0 ? change[i] : 0;
}

void normalise(long count, const unsigned char* bytes, float mean, float scale, float* y) {
  for (long i = 0; i < count; ++i) y[i] = (static_cast<float>(bytes[i]) - mean) * scale;
}

}  // namespace

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
extern const KernelTable table;
const KernelTable table = {TEXT(KERNEL_NAMESPACE), matmul, matmul_gathered, transpose, relu, relu_backward, normalise};

}  // namespace rumor::models::KERNEL_NAMESPACE
