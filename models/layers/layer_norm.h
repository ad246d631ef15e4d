// LayerNorm: each row to mean 0 and variance 1, then gain and bias (Ba, Kiros, Hinton 2016).
//
// Thread: one caller at a time per object.
#pragma once

#include <vector>

#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class LayerNorm {
 public:
  static constexpr float epsilon = 1e-5f;  // GPT-2's, added to the variance

  // x, y: [rows, columns]; gain, bias: [columns]. Keeps mean and scale of each row for backward.
  void forward(Parallel* parallel, long rows, long columns, const float* x, const float* gain,
               const float* bias, float* y);

  // Backward pass of the last forward. change: [rows, columns], d loss / d y. x_change [rows, columns] is added to;
  // gain_gradient and bias_gradient [columns] are overwritten, or both null.
  void backward(Parallel* parallel, long rows, long columns, const float* x, const float* gain,
                const float* change, float* x_change, float* gain_gradient, float* bias_gradient);

  std::size_t memory_bytes() const { return capacity_bytes(mean_, scale_, partial_); }

 private:
  std::vector<float> mean_, scale_;  // [rows]
  std::vector<float>
      partial_;  // [chunks of rows][gain, bias][columns]: sums that any number of threads makes
};

}  // namespace rumor::models
