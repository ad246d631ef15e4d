// The parts of the softmax of a row of logits, in doubles; with equal bits everywhere
// (models/kernels/portable_math.h).
#pragma once

#include <cstdint>
#include <span>

namespace rumor::models {

struct SoftmaxRow {
  std::uint32_t best = 0;  // class of the largest logit; the first of equals
  double sum = 0;          // of the exponentials; NaN where a logit is
};

// exponential[c] = exp(z[c] - the largest), so that softmax(z)[c] = exponential[c] / sum.
// Requires: at least one class, and as many exponentials.
SoftmaxRow softmax_row(std::span<const float> z, std::span<double> exponential);

// -log softmax(z)[c], by the row of z. log_sum: portable_log(row.sum).
inline double surprise(std::span<const float> z, const SoftmaxRow& row, double log_sum, std::uint32_t c) {
  return log_sum - (static_cast<double>(z[c]) - static_cast<double>(z[row.best]));
}

}  // namespace rumor::models
