// Projection: y = x W + b with W stored [in, out], as GPT-2's layers (Conv1D) are.
//
// Forward and backward of one layer; nothing is kept between calls but scratch memory.
// Thread: one caller at a time per object; `parallel` as in models/kernels/tasks.h.
#pragma once

#include <vector>

#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class Projection {
 public:
  // weight: [in, out]; bias: [out]. All three belong to the caller and are looked at during calls only.
  struct Shape {
    long rows, in, out;
  };

  // x: [rows, in] -> y: [rows, out]. With `residual` [rows, out] (or null) added; it may not be y. With `activated`
  // [rows, out] (or null): gelu(y) goes there, made while y is in the cache.
  static void forward(Parallel* parallel, Shape shape, const float* x, const float* weight, const float* bias,
                      const float* residual, float* y, float* activated);

  // change: [rows, out], d loss / d y -> weight_gradient [in, out], bias_gradient [out], x_change [rows, in]; all
  // three are overwritten. The first two may be null: not wanted. With `before` [rows, in] (or null), x was
  // gelu(before) and x_change is that of `before`.
  void backward(Parallel* parallel, Shape shape, const float* x, const float* before, const float* weight,
                const float* change, float* weight_gradient, float* bias_gradient, float* x_change);

  std::size_t memory_bytes() const { return capacity_bytes(turned_); }

 private:
  LargeVector<float> turned_;  // weight, transposed: [out, in]
};

}  // namespace rumor::models
