#include "models/layers/rms_norm.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"

namespace rumor::models {

void RmsNorm::forward(Parallel* parallel, long rows, long columns, float epsilon, const float* x, const float* gain,
                      float* y) {
  scale_.resize(static_cast<std::size_t>(rows));
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, rows, 1, [&](Range part) {
    const long at = part.begin * columns;
    k.rms_norm(part.size(), columns, epsilon, x + at, gain, y + at, scale_.data() + part.begin);
  });
}

void RmsNorm::backward(Parallel* parallel, long rows, long columns, const float* x, const float* gain,
                       const float* change, float* x_change, float* gain_gradient) {
  RUMOR_CHECK(scale_.size() == static_cast<std::size_t>(rows));
  constexpr long chunk_rows = 64;
  const long chunks = (rows + chunk_rows - 1) / chunk_rows;
  partial_.assign(static_cast<std::size_t>(std::max(chunks, 1L) * columns), 0);  // also of no rows
  const SequenceKernels& k = *kernels().sequence;
  each_task(parallel, static_cast<std::size_t>(chunks), [&](std::size_t i) {
    const long row = static_cast<long>(i) * chunk_rows, at = row * columns;
    k.rms_norm_backward(std::min(chunk_rows, rows - row), columns, x + at, gain, scale_.data() + row, change + at,
                        x_change + at, partial_.data() + static_cast<long>(i) * columns);
  });
  if (gain_gradient) k.column_sums(chunks, columns, partial_.data(), columns, gain_gradient);
}

}  // namespace rumor::models
