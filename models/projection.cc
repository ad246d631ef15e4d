#include "models/projection.h"

#include "models/kernels.h"
#include "models/sequence_kernels.h"
#include "models/tasks.h"

namespace rumor::models {

void Projection::forward(Parallel* parallel, Shape s, const float* x, const float* weight, const float* bias,
                         const float* residual, float* y) {
  const KernelTable& k = kernels();
  each_range(parallel, s.rows, 16, [&](Range part) {
    float* to = y + part.begin * s.out;
    const float* from = residual ? residual + part.begin * s.out : nullptr;
    k.sequence->add_row(part.size(), s.out, from, bias, to);
    // y[rows][out] += x[rows][in] * weight[in][out]
    const MatrixView a{x + part.begin * s.in, s.in, 1};
    k.matmul(part.size(), s.out, s.in, a, weight, s.out, to, s.out, Start::output);
  });
}

void Projection::backward(Parallel* parallel, Shape s, const float* x, const float* weight,
                          const float* change, float* weight_gradient, float* bias_gradient,
                          float* x_change) {
  const SequenceKernels& k = *kernels().sequence;
  turned_.resize(static_cast<std::size_t>(s.in * s.out));
  float* turned = turned_.data();
  each_range(parallel, s.in, 16, [&](Range part) {
    k.transpose_rows(part.size(), s.out, weight + part.begin * s.out, s.out, turned + part.begin, s.in);
  });
  each_range(parallel, s.out, 64, [&](Range part) {
    k.column_sums(s.rows, part.size(), change + part.begin, s.out, bias_gradient + part.begin);
  });
  // d weight[in][out] = x[rows][in]^T * change[rows][out]
  parallel_matmul(parallel, s.in, s.out, s.rows, {x, 1, s.in}, change, s.out, weight_gradient, s.out,
                  Start::zero);
  // d x[rows][in] = change[rows][out] * weight[in][out]^T
  parallel_matmul(parallel, s.rows, s.in, s.out, {change, s.out, 1}, turned, s.in, x_change, s.in,
                  Start::zero);
}

}  // namespace rumor::models
