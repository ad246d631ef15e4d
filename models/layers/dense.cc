#include "models/layers/dense.h"

#include <algorithm>

#include "models/kernels/activations.h"
#include "models/kernels/kernels.h"
#include "models/kernels/portable_math.h"
#include "models/kernels/softmax_row.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {

namespace {

// How the units of a layer are cut.
constexpr long unit_grain = 64, units_max = 384;

}  // namespace

std::vector<TensorInfo> DenseLayers::tensors(const std::vector<std::uint32_t>& widths, std::uint32_t first) {
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    tensors.push_back({str(first + 2 * i, ".weight"), {widths[i + 1], widths[i]}});
    tensors.push_back({str(first + 2 * i, ".bias"), {widths[i + 1]}});
  }
  return tensors;
}

DenseLayers::DenseLayers(const ParamLayout& layout, const std::vector<std::uint32_t>& widths, End end)
    : end_(end) {
  RUMOR_CHECK(widths.size() >= 2);
  RUMOR_CHECK(layout.tensors().size() >= 2 * (widths.size() - 1));
  std::size_t at = layout.tensors().size() - 2 * (widths.size() - 1);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i, at += 2) {
    State state;
    state.layer = {widths[i], widths[i + 1], layout.tensors()[at].offset, layout.tensors()[at + 1].offset};
    layers_.push_back(std::move(state));
  }
}

void DenseLayers::make_room(std::uint32_t rows) {
  if (rows <= rows_max_) return;
  rows_max_ = rows;
  std::vector<ActivationArray> arrays = {{&x_by_unit_, std::size_t{rows} * inputs()}};
  for (State& state : layers_) {
    for (float** array : {&state.by_unit, &state.by_row, &state.change, &state.change_by_unit})
      arrays.push_back({array, std::size_t{rows} * state.layer.out});
  }
  place_activations(memory_, arrays);
}

void DenseLayers::forward(const float* params, const float* x, std::uint32_t rows) {
  rows_ = rows;
  make_room(rows);
  each_range(parallel_, inputs(), unit_grain, units_max, [&](Range units) {
    kernels().transpose(rows, units.size(), x + units.begin, inputs(), x_by_unit_ + units.begin * rows, rows);
  });
  const float* input = x_by_unit_;
  for (State& state : layers_) {
    each_range(parallel_, state.layer.out, unit_grain, units_max,
               [&](Range units) { forward_units(params, state, input, units); });
    input = state.by_unit;
  }
}

// input: [in][rows] -> by_unit and by_row, of these units.
void DenseLayers::forward_units(const float* params, const State& state, const float* input, Range units) const {
  const KernelTable& k = kernels();
  const long rows = rows_, in = state.layer.in, out = state.layer.out;
  const float* bias = params + state.layer.bias;
  float* sum = state.by_unit + units.begin * rows;
  for (long o = 0; o < units.size(); ++o) std::fill_n(sum + o * rows, rows, bias[units.begin + o]);
  // sum[out][rows] += weight[out][in] * input[in][rows]
  k.matmul(units.size(), rows, in, {params + state.layer.weight + units.begin * in, in, 1}, input, rows, sum, rows,
           Start::output);
  if (&state != &layers_.back() || end_ == End::relu) k.relu(units.size() * rows, sum);
  k.transpose(units.size(), rows, sum, rows, state.by_row + units.begin, out);
}

std::span<const float> DenseLayers::logits(std::uint32_t row) const {
  return {layers_.back().by_row + std::size_t{row} * classes(), classes()};
}

void DenseLayers::give_outputs(float* out) const {
  std::copy_n(layers_.back().by_row, std::size_t{rows_} * classes(), out);
}

void DenseLayers::take_output_change(const float* change) {
  RUMOR_CHECK(end_ == End::relu);
  const State& top = layers_.back();
  const std::size_t size = std::size_t{rows_} * classes();
  std::copy_n(change, size, top.change);
  kernels().relu_backward(static_cast<long>(size), top.by_row, top.change);
}

// loss = log sum exp z - z[label];  d loss / d z = softmax(z) - onehot(label), divided by the rows.
DenseLayers::Outcome DenseLayers::softmax(const std::uint8_t* label, bool learns, const SoftTargets& soft) {
  RUMOR_CHECK(end_ == End::softmax);
  State& top = layers_.back();
  exponentials_.resize(classes());
  Outcome outcome;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const std::size_t at = std::size_t{row} * classes();
    const std::span<const float> z = logits(row);
    RUMOR_CHECK(label[row] < classes());
    const SoftmaxRow e = softmax_row(z, exponentials_);
    const double log_sum = portable_log(e.sum);
    outcome.loss_sum += surprise(z, e, log_sum, label[row]);
    outcome.right += e.best == label[row] && e.sum == e.sum;
    if (!learns) continue;
    const double weight = static_cast<double>(soft.weight);
    for (std::uint32_t c = 0; c < classes(); ++c) {
      const double target = c == label[row] ? 1 : 0, probability = exponentials_[c] / e.sum;
      double pull = 0;
      if (!soft.probability.empty()) {
        const double wanted = static_cast<double>(soft.probability[at + c]);
        pull = weight * (probability - wanted);
        outcome.loss_sum += weight * wanted * surprise(z, e, log_sum, c);
      }
      top.change[at + c] = static_cast<float>((probability - target + pull) / rows_);
    }
  }
  return outcome;
}

void DenseLayers::predict(float* out) {
  exponentials_.resize(classes());
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const SoftmaxRow e = softmax_row(logits(row), exponentials_);
    for (const double exponential : exponentials_) *out++ = static_cast<float>(exponential / e.sum);
  }
}

void DenseLayers::backward(const float* params, const float* x, float* gradient, float* change_x) {
  const long rows = rows_;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const State& state = layers_[i];
    State* const below = i == 0 ? nullptr : &layers_[i - 1];
    const long in = state.layer.in, out = state.layer.out;
    if (i + 1 == layers_.size()) take_change(state, {0, out}, gradient);
    // d weight[out][in] = change[rows][out]^T * input[rows][in]
    parallel_matmul(parallel_, out, in, rows, {state.change_by_unit, rows, 1}, below ? below->by_row : x, in,
                    gradient + state.layer.weight, in, Start::zero);
    float* const change_input = below ? below->change : change_x;
    if (change_input == nullptr) break;
    each_range(parallel_, in, unit_grain, units_max, [&](Range units) {
      const KernelTable& k = kernels();
      // d input[rows][in] = change[rows][out] * weight[out][in], where the ReLU let the input through
      float* const to = change_input + units.begin;
      k.matmul(rows, units.size(), out, {state.change, out, 1}, params + state.layer.weight + units.begin, in, to, in,
               Start::zero);
      if (!below) return;
      for (long row = 0; row < rows; ++row)
        k.relu_backward(units.size(), below->by_row + row * in + units.begin, to + row * in);
      take_change(*below, units, gradient);
    });
  }
}

// Computes from the known change of these units the gradient of their bias, and change_by_unit.
void DenseLayers::take_change(const State& state, Range units, float* gradient) const {
  const KernelTable& k = kernels();
  const long rows = rows_, out = state.layer.out;
  const float* change = state.change + units.begin;
  // d bias[out] = sum over rows of change[rows][out], as 1 * change
  const float one = 1;
  k.matmul(1, units.size(), rows, {&one, 0, 0}, change, out, gradient + state.layer.bias + units.begin, out,
           Start::zero);
  k.transpose(rows, units.size(), change, out, state.change_by_unit + units.begin * rows, rows);
}

std::size_t DenseLayers::memory_bytes() const {
  return capacity_bytes(memory_, exponentials_);
}

}  // namespace rumor::models
