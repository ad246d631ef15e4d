#include "models/layers/layer_norm.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"

namespace rumor::models {

void LayerNorm::forward(Parallel* parallel, long rows, long columns, const float* x, const float* gain,
                        const float* bias, float* y) {
  mean_.resize(static_cast<std::size_t>(rows));
  scale_.resize(static_cast<std::size_t>(rows));
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, rows, 1, [&](Range part) {
    const long at = part.begin * columns;
    k.layer_norm(part.size(), columns, epsilon, x + at, gain, bias, y + at, mean_.data() + part.begin,
                 scale_.data() + part.begin);
  });
}

void LayerNorm::backward(Parallel* parallel, long rows, long columns, const float* x, const float* gain,
                         const float* change, float* x_change, float* gain_gradient, float* bias_gradient) {
  RUMOR_CHECK(mean_.size() == static_cast<std::size_t>(rows));
  constexpr long chunk_rows = 64;
  const long chunks = (rows + chunk_rows - 1) / chunk_rows;
  partial_.assign(static_cast<std::size_t>(std::max(chunks, 1L) * 2 * columns), 0);  // also of no rows
  const SequenceKernels& k = *kernels().sequence;
  each_task(parallel, static_cast<std::size_t>(chunks), [&](std::size_t i) {
    const long row = static_cast<long>(i) * chunk_rows, at = row * columns;
    float* sums = partial_.data() + static_cast<long>(i) * 2 * columns;
    k.layer_norm_backward(std::min(chunk_rows, rows - row), columns, x + at, gain, mean_.data() + row,
                          scale_.data() + row, change + at, x_change + at, sums, sums + columns);
  });
  if (gain_gradient == nullptr) return;
  k.column_sums(chunks, columns, partial_.data(), 2 * columns, gain_gradient);
  k.column_sums(chunks, columns, partial_.data() + columns, 2 * columns, bias_gradient);
}

}  // namespace rumor::models
