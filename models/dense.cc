#include "models/dense.h"

#include <algorithm>

#include "models/kernels.h"
#include "models/portable_math.h"
#include "models/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {

std::vector<TensorInfo> DenseLayers::tensors(const std::vector<std::uint32_t>& widths, std::uint32_t first) {
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    tensors.push_back({str(first + 2 * i, ".weight"), {widths[i + 1], widths[i]}});
    tensors.push_back({str(first + 2 * i, ".bias"), {widths[i + 1]}});
  }
  return tensors;
}

DenseLayers::DenseLayers(const ParamLayout& layout, const std::vector<std::uint32_t>& widths) {
  RUMOR_CHECK(widths.size() >= 2);
  RUMOR_CHECK(layout.tensors().size() >= 2 * (widths.size() - 1));
  std::size_t at = layout.tensors().size() - 2 * (widths.size() - 1);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i, at += 2) {
    State state;
    state.layer = {widths[i], widths[i + 1], layout.tensors()[at].offset, layout.tensors()[at + 1].offset};
    layers_.push_back(std::move(state));
  }
}

void DenseLayers::forward(const float* params, const float* x, std::uint32_t rows) {
  const KernelTable& k = kernels();
  rows_ = rows;
  x_by_unit_.resize(std::size_t{rows} * inputs());
  k.transpose(rows, inputs(), x, x_by_unit_.data());
  const float* input = x_by_unit_.data();
  for (State& state : layers_) {
    const auto [in, out, weight_at, bias_at] = state.layer;
    state.by_unit.resize(std::size_t{rows} * out);
    state.by_row.resize(state.by_unit.size());
    float* sums = state.by_unit.data();
    const bool is_last = &state == &layers_.back();
    each_range(parallel_, out, 48, [&, in = in, weight = params + weight_at, bias = params + bias_at](Range part) {
      float* sum = sums + part.begin * rows;
      for (long o = 0; o < part.size(); ++o) std::fill_n(sum + o * rows, rows, bias[part.begin + o]);
      // sum[out][rows] += weight[out][in] * input[in][rows]
      k.matmul(part.size(), rows, in, {weight + part.begin * in, in, 1}, input, rows, sum, rows, Start::output);
      if (!is_last) k.relu(part.size() * rows, sum);
    });
    k.transpose(out, rows, sums, state.by_row.data());
    input = sums;
  }
}

// loss = log sum exp z - z[label];  d loss / d z = softmax(z) - onehot(label), divided by the rows.
DenseLayers::Outcome DenseLayers::softmax(const std::uint8_t* label, bool learns) {
  State& top = layers_.back();
  const std::uint32_t classes = top.layer.out;
  exponentials_.resize(classes);
  if (learns) top.change.resize(top.by_row.size());
  Outcome outcome;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const float* z = top.by_row.data() + std::size_t{row} * classes;
    RUMOR_CHECK(label[row] < classes);
    std::uint32_t best = 0;
    for (std::uint32_t c = 1; c < classes; ++c) best = z[c] > z[best] ? c : best;
    const double most = z[best];
    double sum = 0;
    for (std::uint32_t c = 0; c < classes; ++c) {
      exponentials_[c] = portable_exp(static_cast<double>(z[c]) - most);
      sum += exponentials_[c];
    }
    outcome.loss_sum += portable_log(sum) - (static_cast<double>(z[label[row]]) - most);
    outcome.right += best == label[row] && sum == sum;
    if (!learns) continue;
    for (std::uint32_t c = 0; c < classes; ++c) {
      const double target = c == label[row] ? 1 : 0;
      top.change[std::size_t{row} * classes + c] =
          static_cast<float>((exponentials_[c] / sum - target) / rows_);
    }
  }
  return outcome;
}

void DenseLayers::backward(const float* params, const float* x, float* gradient, float* change_x) {
  const KernelTable& k = kernels();
  const long rows = rows_;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const auto [in_width, out_width, weight_at, bias_at] = layers_[i].layer;
    const long in = in_width, out = out_width;
    const float* change = layers_[i].change.data();
    const float* input = i == 0 ? x : layers_[i - 1].by_row.data();
    // d weight[out][in] = change[rows][out]^T * input[rows][in]
    change_by_unit_.resize(static_cast<std::size_t>(rows * out));
    k.transpose(rows, out, change, change_by_unit_.data());
    parallel_matmul(parallel_, out, in, rows, {change_by_unit_.data(), rows, 1}, input, in, gradient + weight_at,
                    in, Start::zero);
    // d bias[out] = sum over rows of change[rows][out], as 1 * change
    const float one = 1;
    k.matmul(1, out, rows, {&one, 0, 0}, change, out, gradient + bias_at, out, Start::zero);
    if (i == 0 && change_x == nullptr) break;
    // d input[rows][in] = change[rows][out] * weight[out][in], where the ReLU let the input through
    if (i > 0) layers_[i - 1].change.resize(layers_[i - 1].by_row.size());
    float* change_input = i == 0 ? change_x : layers_[i - 1].change.data();
    parallel_matmul(parallel_, rows, in, out, {change, out, 1}, params + weight_at, in, change_input, in,
                    Start::zero);
    if (i > 0) k.relu_backward(rows * in, input, change_input);
  }
}

std::size_t DenseLayers::memory_bytes() const {
  std::size_t bytes = capacity_bytes(x_by_unit_, change_by_unit_, exponentials_);
  for (const State& state : layers_) bytes += capacity_bytes(state.by_unit, state.by_row, state.change);
  return bytes;
}

}  // namespace rumor::models
