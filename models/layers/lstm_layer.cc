#include "models/layers/lstm_layer.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/kernels/recurrent_kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

namespace {

constexpr long group_units = 16, group_gates = 4 * group_units, panel = 64;

std::size_t floats(long count) { return static_cast<std::size_t>(count); }

// task(rows of the tensor, their column among the packed gates) for each gate of each group. Rows are the outputs of a
// tensor of nn.LSTM, and neighbours there are neighbours here.
template <class Task>
void each_gate(Parallel* parallel, long units, Task&& task) {
  each_range(parallel, LstmLayer::padded(units) / group_units, 1, [&](Range part) {
    for (long group = part.begin; group < part.end; ++group) {
      for (long gate = 0; gate < 4; ++gate) {
        const long row = gate * units + group * group_units;
        const Range rows{row, row + std::min(group_units, units - group * group_units)};
        task(rows, group * group_gates + gate * group_units);
      }
    }
  });
}

}  // namespace

void LstmLayer::make_room(const Shape& s) {
  const long units = padded(s.units);
  step_ = s.batch * units;
  room_in(out_, floats((s.places + 1) * step_));
  room_in(cell_, floats((s.places + 1) * step_));
  room_in(gates_, floats(s.places * step_ * 4));
}

// Padding is zero because a grown vector is, and because one layer keeps its shape of weights.
void LstmLayer::pack_forward(Parallel* parallel, const Shape& s, const Weights& weights) {
  const KernelTable& k = kernels();
  const long units = padded(s.units), gates = 4 * units;
  float *ih = room_in(ih_, floats(s.x_row * gates)), *hh = room_in(hh_, floats(units * gates));
  float* bias = room_in(bias_, floats(gates));
  each_gate(parallel, s.units, [&](Range rows, long at) {
    k.transpose(rows.size(), s.inputs, weights.ih + rows.begin * s.inputs, s.inputs, ih + at, gates);
    const long group = at / group_gates, column = at % group_gates;
    k.transpose(rows.size(), s.units, weights.hh + rows.begin * s.units, s.units,
                hh + group * units * group_gates + column, group_gates);
    k.sequence->add(rows.size(), weights.bias_ih + rows.begin, weights.bias_hh + rows.begin, bias + at);
  });
}

void LstmLayer::pack_backward(Parallel* parallel, const Shape& s, const Weights& weights) {
  const long units = padded(s.units), gates = 4 * units, panels = (units + panel - 1) / panel;
  float* hh = room_in(hh_back_, floats(panels * gates * panel));
  each_gate(parallel, s.units, [&](Range rows, long at) {
    for (long row = rows.begin; row < rows.end; ++row, ++at) {
      for (long from = 0; from < s.units; from += panel)
        std::copy_n(weights.hh + row * s.units + from, std::min(panel, s.units - from),
                    hh + from * gates + at * panel);
    }
  });
}

// All time steps of rows begin to end of the batch.
void LstmLayer::walk(const Shape& s, const Input& input, long begin, long end) {
  const KernelTable& k = kernels();
  const long units = padded(s.units), gates = 4 * units, rows = end - begin;
  for (long t = 0; t < s.places; ++t) {
    float* here = gates_.data() + (t * s.batch + begin) * gates;
    for (long row = 0; input.row_of && row < rows; ++row)
      std::copy_n(projected_.data() + input.row_of[t * s.batch + begin + row] * gates, gates, here + row * gates);
    const float *out_before = out(t - 1) + begin * units, *cell_before = cell(t - 1) + begin * units;
    float *out_here = out(t) + begin * units, *cell_here = cell(t) + begin * units;
    for (long group = 0; group * group_units < units; ++group) {
      float* sums = here + group * group_gates;
      const long at = group * group_units;
      k.matmul(rows, group_gates, units, {out_before, units, 1}, hh_.data() + group * units * group_gates,
               group_gates, sums, gates, Start::output);
      k.recurrent->lstm_forward(rows, 1, sums, gates, cell_before + at, cell_here + at, out_here + at, units);
    }
  }
}

void LstmLayer::forward(Parallel* parallel, const Shape& s, const Weights& weights, const Input& input) {
  RUMOR_CHECK(step_ == s.batch * padded(s.units));
  RUMOR_CHECK(input.row_of || input.rows == s.places * s.batch);
  const long gates = 4 * padded(s.units);
  pack_forward(parallel, s, weights);
  float* sums = input.row_of ? room_in(projected_, floats(input.rows * gates)) : gates_.data();
  Projection::forward(parallel, {input.rows, s.x_row, gates}, input.x, ih_.data(), bias_.data(), nullptr, sums,
                      nullptr);
  each_range(parallel, s.batch, 1, [&](Range part) { walk(s, input, part.begin, part.end); });
}

void LstmLayer::walk_back(const Shape& s, float* change, long begin, long end) {
  const KernelTable& k = kernels();
  const long units = padded(s.units), gates = 4 * units, rows = end - begin;
  float* cell_change = cell_change_.data() + begin * units;
  std::fill_n(cell_change, rows * units, 0.0f);
  for (long t = s.places; t-- > 0;) {
    float *here = gates_.data() + (t * s.batch + begin) * gates, *out_change = change + (t * s.batch + begin) * units;
    k.recurrent->lstm_backward(rows, units / group_units, here, gates, cell(t - 1) + begin * units,
                               cell(t) + begin * units, out_change, cell_change, units);
    if (t == 0) return;
    float* before = out_change - s.batch * units;
    for (long from = 0; from < units; from += panel)
      k.matmul(rows, std::min(panel, units - from), gates, {here, gates, 1}, hh_back_.data() + from * gates, panel,
               before + from, units, Start::output);
  }
}

// projected_[row] = the sum of the changes of all places that row_of says it is at, in their order.
void LstmLayer::sum_changes(Parallel* parallel, const Shape& s, const Input& input) {
  const SequenceKernels& k = *kernels().sequence;
  const long gates = 4 * padded(s.units), places = s.places * s.batch;
  each_range(parallel, gates, group_gates, [&](Range part) {
    for (long row = 0; row < input.rows; ++row)
      std::fill_n(projected_.data() + row * gates + part.begin, part.size(), 0.0f);
    for (long place = 0; place < places; ++place) {
      float* sum = projected_.data() + input.row_of[place] * gates + part.begin;
      k.add(part.size(), sum, gates_.data() + place * gates + part.begin, sum);
    }
  });
}

void LstmLayer::unpack(Parallel* parallel, const Shape& s, const Gradients& gradients) {
  const KernelTable& k = kernels();
  const long gates = 4 * padded(s.units);
  each_gate(parallel, s.units, [&](Range rows, long at) {
    k.transpose(s.inputs, rows.size(), ih_gradient_.data() + at, gates, gradients.ih + rows.begin * s.inputs, s.inputs);
    k.transpose(s.units, rows.size(), hh_gradient_.data() + at, gates, gradients.hh + rows.begin * s.units, s.units);
    for (float* bias : {gradients.bias_ih, gradients.bias_hh})
      std::copy_n(bias_gradient_.data() + at, rows.size(), bias + rows.begin);
  });
}

void LstmLayer::backward(Parallel* parallel, const Shape& s, const Weights& weights, const Input& input,
                         float* change, const Gradients& gradients, float* x_change) {
  const long units = padded(s.units), gates = 4 * units, places = s.places * s.batch;
  pack_backward(parallel, s, weights);
  room_in(cell_change_, floats(step_));
  each_range(parallel, s.batch, 1, [&](Range part) { walk_back(s, change, part.begin, part.end); });
  // d hh[units][gates] = out[places before][units]^T * d sums[places][gates]
  parallel_matmul(parallel, units, gates, places, {out(-1), 1, units}, gates_.data(), gates,
                  room_in(hh_gradient_, floats(units * gates)), gates, Start::zero);
  if (input.row_of) sum_changes(parallel, s, input);
  projection_.backward(parallel, {input.rows, s.x_row, gates}, input.x, nullptr, ih_.data(),
                       input.row_of ? projected_.data() : gates_.data(),
                       room_in(ih_gradient_, floats(s.x_row * gates)), room_in(bias_gradient_, floats(gates)),
                       x_change);
  unpack(parallel, s, gradients);
}

std::size_t LstmLayer::memory_bytes() const {
  return capacity_bytes(out_, cell_, gates_, projected_, ih_, bias_, hh_, hh_back_, ih_gradient_, hh_gradient_,
                        bias_gradient_, cell_change_) +
         projection_.memory_bytes();
}

}  // namespace rumor::models
