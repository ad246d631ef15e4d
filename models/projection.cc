#include "models/projection.h"

#include <algorithm>

#include "models/kernels.h"
#include "models/sequence_kernels.h"
#include "models/tasks.h"

namespace rumor::models {

namespace {

// task(rows) for all rows, in pieces of which input and output stay in the second-level cache.
template <class Task>
void each_block(Parallel* parallel, long rows, Task&& task) {
  constexpr long block = 240;  // a multiple of the rows that matmul takes at a time
  each_range(parallel, rows, 24, [&](Range part) {
    for (long at = part.begin; at < part.end; at += block) task(Range{at, std::min(at + block, part.end)});
  });
}

}  // namespace

void Projection::forward(Parallel* parallel, Shape s, const float* x, const float* weight, const float* bias,
                         const float* residual, float* y, float* activated) {
  const KernelTable& k = kernels();
  each_block(parallel, s.rows, [&](Range part) {
    const long at = part.begin * s.out;
    k.sequence->add_row(part.size(), s.out, residual ? residual + at : nullptr, bias, y + at);
    // y[rows][out] += x[rows][in] * weight[in][out]
    const MatrixView a{x + part.begin * s.in, s.in, 1};
    k.matmul(part.size(), s.out, s.in, a, weight, s.out, y + at, s.out, Start::output);
    if (activated) k.sequence->gelu(part.size() * s.out, y + at, activated + at);
  });
}

void Projection::backward(Parallel* parallel, Shape s, const float* x, const float* before, const float* weight,
                          const float* change, float* weight_gradient, float* bias_gradient, float* x_change) {
  const KernelTable& k = kernels();
  turned_.resize(static_cast<std::size_t>(s.in * s.out));
  float* turned = turned_.data();
  each_range(parallel, s.in, 16, [&](Range part) {
    k.sequence->transpose_rows(part.size(), s.out, weight + part.begin * s.out, s.out, turned + part.begin, s.in);
  });
  each_range(parallel, s.out, 64, [&](Range part) {
    k.sequence->column_sums(s.rows, part.size(), change + part.begin, s.out, bias_gradient + part.begin);
  });
  // d weight[in][out] = x[rows][in]^T * change[rows][out]
  parallel_matmul(parallel, s.in, s.out, s.rows, {x, 1, s.in}, change, s.out, weight_gradient, s.out, Start::zero);
  // d x[rows][in] = change[rows][out] * weight[in][out]^T
  each_block(parallel, s.rows, [&](Range part) {
    const MatrixView a{change + part.begin * s.out, s.out, 1};
    float* to = x_change + part.begin * s.in;
    k.matmul(part.size(), s.in, s.out, a, turned, s.in, to, s.in, Start::zero);
    if (before) k.sequence->gelu_backward(part.size() * s.in, before + part.begin * s.in, to);
  });
}

}  // namespace rumor::models
