// DenseLayers: linear layers with ReLU between them and softmax cross-entropy at the end. They are a whole
// MLP, or the head of a convolutional network. In a part of an MLP that is not its last, a ReLU is the end.
//
// Activations are kept in two layouts, because vectors run over independent sums: over the rows of the batch
// in the forward pass ([unit][row]), over the units of a layer in the backward pass ([row][unit]). So a
// product reads the weights once, in their stored order.
//
// Cost of a step: 6 floating-point operations per weight and row (2 forward, 4 backward; 4 in all without the
// gradient of the input). Memory: four copies of every activation for the largest batch seen.
//
// Bits: all sums run in kernels (models/kernels/kernel_table.h), softmax in double through
// models/kernels/portable_math.h. Products are cut between threads by outputs, so any number of threads gives
// the same bits.
//
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/kernels/tasks.h"
#include "models/layers/soft_targets.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/parallel.h"
#include "runtime/base/param_layout.h"

namespace rumor::models {

class DenseLayers {
 public:
  // Offsets of the weights of one layer in the parameter vector: [out][in], then bias [out].
  struct Layer {
    std::uint32_t in = 0, out = 0;
    std::uint32_t weight = 0, bias = 0;
  };

  // The tensors of layers between these widths as nn.Sequential(Linear, ReLU, ..., Linear) names them, the
  // first Linear being module `first`. Requires: two widths or more, none zero.
  static std::vector<TensorInfo> tensors(const std::vector<std::uint32_t>& widths, std::uint32_t first);

  enum class End : std::uint8_t { softmax, relu };

  // tensors(widths, ...) are the last of `layout`.
  DenseLayers(const ParamLayout& layout, const std::vector<std::uint32_t>& widths, End end = End::softmax);

  DenseLayers(const DenseLayers&) = delete;
  DenseLayers& operator=(const DenseLayers&) = delete;

  void set_parallel(Parallel* parallel) { parallel_ = parallel; }
  std::size_t memory_bytes() const;
  std::uint32_t inputs() const { return layers_.front().layer.in; }

  // x: [rows][inputs]
  void forward(const float* params, const float* x, std::uint32_t rows);

  struct Outcome {
    double loss_sum = 0;
    std::uint32_t right = 0;  // rows whose largest output is the label
  };
  // Loss and hits of the rows of the last forward(). With `learns`, notes the gradient of their mean loss for
  // backward().
  Outcome softmax(const std::uint8_t* label, bool learns, const SoftTargets& soft = {});
  // The probability of each class for the same rows, [rows][classes].
  void predict(float* out);
  std::uint32_t classes() const { return layers_.back().layer.out; }
  std::uint32_t rows() const { return rows_; }  // of the last forward()

  // With End::relu. The outputs of the rows of the last forward(), [rows][classes()].
  void give_outputs(float* out) const;
  // With End::relu, instead of softmax(.., true): change [rows][classes()] is d loss / d outputs.
  void take_output_change(const float* change);

  // Gradients of the weights and biases are overwritten. change_x [rows][inputs]: d loss / d x, or null.
  // Requires: softmax(.., true) or take_output_change() after forward(params, x, ..).
  void backward(const float* params, const float* x, float* gradient, float* change_x);

 private:
  std::span<const float> logits(std::uint32_t row) const;
  // All floats are in memory_.
  struct State {
    Layer layer;
    float* by_unit = nullptr;         // activations after this layer, [out][rows]
    float* by_row = nullptr;          // the same, [rows][out]
    float* change = nullptr;          // d loss / d (this layer's sums), [rows][out]
    float* change_by_unit = nullptr;  // the same, [out][rows]
  };

  void make_room(std::uint32_t rows);
  void forward_units(const float* params, const State& state, const float* input, Range units) const;
  void take_change(const State& state, Range units, float* gradient) const;

  std::vector<State> layers_;
  End end_;
  LargeVector<float> memory_;          // of all activations
  std::uint32_t rows_max_ = 0;         // for which there is room
  float* x_by_unit_ = nullptr;         // [inputs][rows]
  std::vector<double> exponentials_;   // of a row
  std::uint32_t rows_ = 0;
  Parallel* parallel_ = nullptr;
};

}  // namespace rumor::models
