// Projection: y = x W + b with W stored [in, out], as GPT-2's layers (Conv1D) are.
//
// Forward and backward of one layer; nothing is kept between calls but scratch memory.
// Thread: one caller at a time per object; `parallel` as in models/tasks.h.
#pragma once

#include <vector>

#include "runtime/base/parallel.h"

namespace rumor::models {

class Projection {
 public:
  // weight: [in, out]; bias: [out]. All three belong to the caller and are looked at during calls only.
  struct Shape {
    long rows, in, out;
  };

  // x: [rows, in] -> y: [rows, out]. With `residual` [rows, out] (or null) added; it may not be y.
  static void forward(Parallel* parallel, Shape shape, const float* x, const float* weight, const float* bias,
                      const float* residual, float* y);

  // change: [rows, out], d loss / d y -> weight_gradient [in, out], bias_gradient [out], x_change [rows, in];
  // all three are overwritten.
  void backward(Parallel* parallel, Shape shape, const float* x, const float* weight, const float* change,
                float* weight_gradient, float* bias_gradient, float* x_change);

 private:
  std::vector<float> turned_;  // weight, transposed: [out, in]
};

}  // namespace rumor::models
