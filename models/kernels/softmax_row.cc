#include "models/kernels/softmax_row.h"

#include "models/kernels/portable_math.h"

namespace rumor::models {

SoftmaxRow softmax_row(std::span<const float> z, std::span<double> exponential) {
  SoftmaxRow row;
  for (std::uint32_t c = 1; c < z.size(); ++c) row.best = z[c] > z[row.best] ? c : row.best;
  const double most = static_cast<double>(z[row.best]);
  for (std::uint32_t c = 0; c < z.size(); ++c) {
    exponential[c] = portable_exp(static_cast<double>(z[c]) - most);
    row.sum += exponential[c];
  }
  return row;
}

}  // namespace rumor::models
