// RmsNorm: each row to a root mean square of 1, then gain (Zhang, Sennrich 2019).
//
// Thread: one caller at a time per object.
#pragma once

#include <vector>

#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class RmsNorm {
 public:
  // x, y: [rows, columns]; gain: [columns]; epsilon is added to the mean square. Keeps the scale of each row for
  // backward.
  void forward(Parallel* parallel, long rows, long columns, float epsilon, const float* x, const float* gain,
               float* y);

  // Backward pass of the last forward. change: [rows, columns], d loss / d y. x_change [rows, columns] is added to;
  // gain_gradient [columns] is overwritten, or null.
  void backward(Parallel* parallel, long rows, long columns, const float* x, const float* gain, const float* change,
                float* x_change, float* gain_gradient);

  std::size_t memory_bytes() const { return capacity_bytes(scale_, partial_); }

 private:
  std::vector<float> scale_;    // [rows]
  std::vector<float> partial_;  // [chunks of rows][columns]: sums that any number of threads makes
};

}  // namespace rumor::models
