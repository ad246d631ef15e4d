#include "models/mlp.h"

#include <algorithm>

#include "models/kernels.h"
#include "models/portable_math.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_mlp(const ModelConfig& config) {
  if (config.vocabulary > 0)
    return Error{Errc::usage, "an mlp does not read text; use model.family = \"gpt\", or data of another kind"};
  if (config.inputs == 0) return Error{Errc::usage, "an mlp needs at least one input"};
  if (config.classes < 2 || config.classes > 256)
    return Error{Errc::usage, str("an mlp needs 2 to 256 classes, not ", config.classes)};
  std::vector<std::uint32_t> widths{config.inputs};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  widths.push_back(config.classes);
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (widths[i + 1] == 0)
      return Error{Errc::usage, str("hidden layer ", i + 1, " of the mlp has no units; leave it out")};
    tensors.push_back({str(2 * i, ".weight"), {widths[i + 1], widths[i]}});
    tensors.push_back({str(2 * i, ".bias"), {widths[i + 1]}});
  }
  Result<ParamLayout> layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<Mlp>(std::move(*layout), std::move(widths)));
}

Mlp::Mlp(ParamLayout layout, std::vector<std::uint32_t> widths) : layout_(std::move(layout)) {
  RUMOR_CHECK(widths.size() >= 2);
  RUMOR_CHECK(layout_.tensors().size() == 2 * (widths.size() - 1));
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer;
    layer.in = widths[i];
    layer.out = widths[i + 1];
    layer.weight = layout_.tensors()[2 * i].offset;
    layer.bias = layout_.tensors()[2 * i + 1].offset;
    layers_.push_back(std::move(layer));
  }
}

// Activations are kept in two layouts, because vectors run over independent sums: over the rows of the batch
// going forward ([unit][row]), over the units of a layer going backward ([row][unit]).
void Mlp::forward(const float* params, const float* x, std::uint32_t rows) {
  const KernelTable& k = kernels();
  x_by_unit_.resize(std::size_t{rows} * layers_.front().in);
  k.transpose(rows, layers_.front().in, x, x_by_unit_.data());
  const float* input = x_by_unit_.data();
  for (Layer& layer : layers_) {
    layer.by_unit.resize(std::size_t{rows} * layer.out);
    layer.by_row.resize(layer.by_unit.size());
    float* sum = layer.by_unit.data();
    const float* bias = params + layer.bias;
    for (std::uint32_t o = 0; o < layer.out; ++o) std::fill_n(sum + std::size_t{o} * rows, rows, bias[o]);
    // sum[out][rows] += weight[out][in] * input[in][rows]
    const MatrixView weight{params + layer.weight, layer.in, 1};
    k.matmul(layer.out, rows, layer.in, weight, input, rows, sum, rows, Start::output);
    if (&layer != &layers_.back()) k.relu(static_cast<long>(layer.by_unit.size()), sum);
    k.transpose(layer.out, rows, sum, layer.by_row.data());
    input = sum;
  }
}

// loss = log sum exp z - z[label];  d loss / d z = softmax(z) - onehot(label), divided by the rows.
void Mlp::softmax(const std::uint8_t* label, std::uint32_t rows, float* change) {
  const std::uint32_t classes = layers_.back().out;
  exponentials_.resize(classes);
  loss_sum_ = 0;
  right_ = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const float* z = layers_.back().by_row.data() + std::size_t{row} * classes;
    RUMOR_CHECK(label[row] < classes);
    std::uint32_t best = 0;
    for (std::uint32_t c = 1; c < classes; ++c) best = z[c] > z[best] ? c : best;
    const double top = z[best];
    double sum = 0;
    for (std::uint32_t c = 0; c < classes; ++c) {
      exponentials_[c] = portable_exp(static_cast<double>(z[c]) - top);
      sum += exponentials_[c];
    }
    loss_sum_ += portable_log(sum) - (static_cast<double>(z[label[row]]) - top);
    right_ += best == label[row] && sum == sum;
    if (!change) continue;
    for (std::uint32_t c = 0; c < classes; ++c) {
      const double target = c == label[row] ? 1 : 0;
      change[std::size_t{row} * classes + c] = static_cast<float>((exponentials_[c] / sum - target) / rows);
    }
  }
}

void Mlp::backward(const float* params, const float* x, std::uint32_t rows, float* gradient) {
  const KernelTable& k = kernels();
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const float* change = layer.change.data();
    const float* input = i == 0 ? x : layers_[i - 1].by_row.data();
    // d weight[out][in] = change[rows][out]^T * input[rows][in]
    float* weight_gradient = gradient + layer.weight;
    k.matmul(layer.out, layer.in, rows, {change, 1, layer.out}, input, layer.in, weight_gradient, layer.in,
             Start::zero);
    // d bias[out] = sum over rows of change[rows][out], as 1 * change
    const float one = 1;
    float* bias_gradient = gradient + layer.bias;
    k.matmul(1, layer.out, rows, {&one, 0, 0}, change, layer.out, bias_gradient, layer.out, Start::zero);
    if (i == 0) break;
    // d input[rows][in] = change[rows][out] * weight[out][in], where the ReLU let the input through
    Layer& below = layers_[i - 1];
    below.change.resize(below.by_row.size());
    const float* weight = params + layer.weight;
    k.matmul(rows, layer.in, layer.out, {change, layer.out, 1}, weight, layer.in, below.change.data(),
             layer.in, Start::zero);
    k.relu_backward(static_cast<long>(below.change.size()), below.by_row.data(), below.change.data());
  }
}

float Mlp::loss_and_gradient(std::span<const float> params, const Batch& batch, std::span<float> gradient) {
  check(params, batch);
  RUMOR_CHECK(gradient.size() == layout_.params());
  RUMOR_CHECK(batch.rows > 0);
  forward(params.data(), batch.x.data(), batch.rows);
  Layer& top = layers_.back();
  top.change.resize(top.by_row.size());
  softmax(batch.label.data(), batch.rows, top.change.data());
  backward(params.data(), batch.x.data(), batch.rows, gradient.data());
  return static_cast<float>(loss_sum_ / batch.rows);
}

Evaluation Mlp::evaluate(std::span<const float> params, const Batch& batch) {
  check(params, batch);
  RUMOR_CHECK(batch.rows > 0);
  constexpr std::uint32_t piece = 256;
  double loss = 0;
  std::uint32_t right = 0;
  for (std::uint32_t row = 0; row < batch.rows; row += piece) {
    const std::uint32_t rows = std::min(piece, batch.rows - row);
    forward(params.data(), batch.x.data() + std::size_t{row} * layers_.front().in, rows);
    softmax(batch.label.data() + row, rows, nullptr);
    loss += loss_sum_;
    right += right_;
  }
  return {loss / batch.rows, static_cast<double>(right) / batch.rows};
}

void Mlp::check(std::span<const float> params, const Batch& batch) const {
  RUMOR_CHECK(params.size() == layout_.params());
  RUMOR_CHECK(batch.x.size() == std::size_t{batch.rows} * layers_.front().in);
  RUMOR_CHECK(batch.label.size() == batch.rows);
}

}  // namespace rumor::models
