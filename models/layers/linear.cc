#include "models/layers/linear.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"

namespace rumor::models {

void Linear::forward(Parallel* parallel, Shape s, const float* x, const float* weight, const float* bias,
                     const float* residual, float* y) {
  RUMOR_CHECK(bias == nullptr || residual == nullptr);
  const KernelTable& k = kernels();
  float* turned = room_in(turned_, static_cast<std::size_t>(s.in * s.out));
  each_range(parallel, s.out, 16, [&](Range part) {
    k.transpose(part.size(), s.in, weight + part.begin * s.in, s.in, turned + part.begin, s.out);
  });
  const Start start = bias || residual ? Start::output : Start::zero;
  each_tile(parallel, s.rows, s.out, [&](Range rows, Range columns) {
    for (long r = rows.begin; r < rows.end && start == Start::output; ++r) {
      const float* from = bias ? bias + columns.begin : residual + r * s.y_row + columns.begin;
      std::copy_n(from, columns.size(), y + r * s.y_row + columns.begin);
    }
    // y[rows][out] += x[rows][in] * weight[out][in]^T
    k.matmul(rows.size(), columns.size(), s.in, {x + rows.begin * s.in, s.in, 1}, turned + columns.begin, s.out,
             y + rows.begin * s.y_row + columns.begin, s.y_row, start);
  });
}

void Linear::backward(Parallel* parallel, Shape s, const float* x, const float* weight, const float* change,
                      float* weight_gradient, float* bias_gradient, float* x_change, Start x_start) {
  const KernelTable& k = kernels();
  if (bias_gradient)
    each_range(parallel, s.out, 64, [&](Range part) {
      k.sequence->column_sums(s.rows, part.size(), change + part.begin, s.y_row, bias_gradient + part.begin);
    });
  // d weight[out][in] = change[rows][out]^T * x[rows][in]
  if (weight_gradient)
    parallel_matmul(parallel, s.out, s.in, s.rows, {change, 1, s.y_row}, x, s.in, weight_gradient, s.in, Start::zero);
  // d x[rows][in] += change[rows][out] * weight[out][in]
  each_tile(parallel, s.rows, s.in, [&](Range rows, Range columns) {
    k.matmul(rows.size(), columns.size(), s.out, {change + rows.begin * s.y_row, s.y_row, 1}, weight + columns.begin,
             s.in, x_change + rows.begin * s.in + columns.begin, s.in, x_start);
  });
}

}  // namespace rumor::models
