#include "models/layers/projection.h"

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"

namespace rumor::models {

void Projection::forward(Parallel* parallel, Shape s, const float* x, const float* weight, const float* bias,
                         const float* residual, float* y, float* activated) {
  const KernelTable& k = kernels();
  each_tile(parallel, s.rows, s.out, [&](Range rows, Range columns) {
    const long at = rows.begin * s.out + columns.begin;
    for (long r = 0; r < rows.size(); ++r) {
      const long row = at + r * s.out;
      k.sequence->add_row(1, columns.size(), residual ? residual + row : nullptr, bias + columns.begin,
                          y + row);
    }
    // y[rows][out] += x[rows][in] * weight[in][out]
    const MatrixView a{x + rows.begin * s.in, s.in, 1};
    k.matmul(rows.size(), columns.size(), s.in, a, weight + columns.begin, s.out, y + at, s.out,
             Start::output);
    for (long r = 0; activated && r < rows.size(); ++r)
      k.sequence->gelu(columns.size(), y + at + r * s.out, activated + at + r * s.out);
  });
}

void Projection::backward(Parallel* parallel, Shape s, const float* x, const float* before,
                          const float* weight, const float* change, float* weight_gradient,
                          float* bias_gradient, float* x_change) {
  const KernelTable& k = kernels();
  float* turned = room_in(turned_, static_cast<std::size_t>(s.in * s.out));
  each_range(parallel, s.in, 16, [&](Range part) {
    k.transpose(part.size(), s.out, weight + part.begin * s.out, s.out, turned + part.begin, s.in);
  });
  each_range(parallel, bias_gradient ? s.out : 0, 64, [&](Range part) {
    k.sequence->column_sums(s.rows, part.size(), change + part.begin, s.out, bias_gradient + part.begin);
  });
  // d weight[in][out] = x[rows][in]^T * change[rows][out]
  if (weight_gradient)
    parallel_matmul(parallel, s.in, s.out, s.rows, {x, 1, s.in}, change, s.out, weight_gradient, s.out, Start::zero);
  // d x[rows][in] = change[rows][out] * weight[in][out]^T
  each_tile(parallel, s.rows, s.in, [&](Range rows, Range columns) {
    const MatrixView a{change + rows.begin * s.out, s.out, 1};
    const long at = rows.begin * s.in + columns.begin;
    k.matmul(rows.size(), columns.size(), s.out, a, turned + columns.begin, s.in, x_change + at, s.in,
             Start::zero);
    for (long r = 0; before && r < rows.size(); ++r)
      k.sequence->gelu_backward(columns.size(), before + at + r * s.in, x_change + at + r * s.in);
  });
}

}  // namespace rumor::models
