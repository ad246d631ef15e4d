// Linear: y = x W^T + b with W stored [out, in], as PyTorch's nn.Linear and the layers of a Llama are.
// (models/layers/projection.h has the layer with W stored inputs first.)
//
// Forward and backward of one layer; nothing is kept between calls but scratch memory, so one object serves all layers
// of a model. Thread: one caller at a time per object; `parallel` as in models/kernels/tasks.h.
#pragma once

#include "models/kernels/kernel_table.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class Linear {
 public:
  struct Shape {
    long rows, in, out;
    long y_row = out;  // floats from one row of y to the next; more than `out` where y is a part of wider rows
  };

  // x: [rows, in] -> y: [rows, out]. weight: [out, in]. Either `bias` [out] or `residual`, laid out as y, may be added;
  // null: nothing. The residual may not be y.
  void forward(Parallel* parallel, Shape shape, const float* x, const float* weight, const float* bias,
               const float* residual, float* y);

  // change: d loss / d y, laid out as y -> weight_gradient [out, in] and bias_gradient [out], both overwritten (null:
  // not wanted), and x_change [rows, in]: overwritten with Start::zero, added to with Start::output.
  static void backward(Parallel* parallel, Shape shape, const float* x, const float* weight, const float* change,
                       float* weight_gradient, float* bias_gradient, float* x_change, Start x_start);

  std::size_t memory_bytes() const { return capacity_bytes(turned_); }

 private:
  LargeVector<float> turned_;  // weight, transposed: [in, out]
};

}  // namespace rumor::models
