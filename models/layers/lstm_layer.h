// LstmLayer: one recurrent layer of an LSTM, PyTorch's nn.LSTM of one layer, over all time steps of a window.
//
//   sums = ih x[t] + bias_ih + hh out[t - 1] + bias_hh, then the gates of models/kernels/recurrent_kernels.h
//
// Arrays of activations are [places][batch][...], time step by time step. Units and inputs are padded with zeros to
// multiples of 16 (padded()), and the padded outputs stay zero. Gates are stored in groups of 16 units, the four gates
// of a group side by side. forward() packs the weights so, which costs as much as a small part of one time step.
//
// Threads: each walks its own rows of the batch through all time steps, so that nobody waits. Bits: the same for any
// number. Thread: one caller at a time per object; `parallel` as in models/kernels/tasks.h.
// Memory, floats: places * batch * 6 units for the activations, three times the weights for the packed ones.
#pragma once

#include <cstdint>

#include "models/layers/projection.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class LstmLayer {
 public:
  // units: of the layer. inputs: columns of ih. Rows of x are x_row floats, >= inputs; the rest of a row is zero.
  struct Shape {
    long batch, places, inputs, x_row, units;
  };
  // Tensors of nn.LSTM: ih [4 units][inputs], hh [4 units][units], both biases [4 units]; gates in the order i, f, g,
  // o.
  struct Weights {
    const float *ih, *hh, *bias_ih, *bias_hh;
  };
  struct Gradients {
    float *ih, *hh, *bias_ih, *bias_hh;  // overwritten
  };
  // Rows of the layer's input. x: [rows][x_row]. The input of time step t and batch row b is row t * batch + b or, with
  // row_of [places * batch], row row_of[t * batch + b]: so rows that occur often are multiplied once.
  struct Input {
    const float* x;
    long rows;
    const std::int32_t* row_of = nullptr;
  };

  static long padded(long count) { return (count + 15) / 16 * 16; }

  // Starts from the state in out(-1) and cell(-1), which the caller fills after make_room().
  void forward(Parallel* parallel, const Shape& shape, const Weights& weights, const Input& input);
  // Takes the arguments of the last forward(). change: d loss / d out, [places][batch][padded(units)], zero in the
  // padding; overwritten. x_change: d loss / d x, [rows][x_row], overwritten. The state before the window is a
  // constant.
  void backward(Parallel* parallel, const Shape& shape, const Weights& weights, const Input& input, float* change,
                const Gradients& gradients, float* x_change);

  // Room for a window of this shape. The content is lost.
  void make_room(const Shape& shape);
  // Outputs and cells after time step t, [batch][padded(units)]; t = -1: before the window.
  float* out(long t) { return out_.data() + (t + 1) * step_; }
  float* cell(long t) { return cell_.data() + (t + 1) * step_; }

  std::size_t memory_bytes() const;

 private:
  void pack_forward(Parallel* parallel, const Shape& shape, const Weights& weights);
  void pack_backward(Parallel* parallel, const Shape& shape, const Weights& weights);
  void walk(const Shape& shape, const Input& input, long begin, long end);
  void walk_back(const Shape& shape, float* change, long begin, long end);
  void sum_changes(Parallel* parallel, const Shape& shape, const Input& input);
  void unpack(Parallel* parallel, const Shape& shape, const Gradients& gradients);

  long step_ = 0;                  // floats of a state of the whole batch
  LargeVector<float> out_, cell_;  // [places + 1][batch][units]
  LargeVector<float> gates_;       // [places][batch][4 units]; after backward(), d loss / d their sums
  LargeVector<float> projected_;   // [rows of x][4 units], with row_of; then d loss / d it
  LargeVector<float> ih_, bias_;   // [x_row][4 units], [4 units]: packed for the input product
  LargeVector<float> hh_;          // [groups][units][64]: packed for the recurrent product
  LargeVector<float> hh_back_;     // [units / 64][4 units][64]: packed for its backward pass
  LargeVector<float> ih_gradient_, hh_gradient_, bias_gradient_;  // packed: [x_row | units | 1][4 units]
  LargeVector<float> cell_change_;                                // [batch][units]
  Projection projection_;
};

}  // namespace rumor::models
