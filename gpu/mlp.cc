#include "gpu/mlp.h"

#include <algorithm>
#include <utility>

#include "models/mlp.h"
#include "models/portable_math.h"
#include "models/softmax_row.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

Result<DeviceMlp> DeviceMlp::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision) {
  const Result<std::unique_ptr<models::Model>> model = models::make_mlp(config);
  if (!model) return model.error();
  std::vector<std::uint32_t> widths{config.inputs};
  widths.insert(widths.end(), config.hidden.begin(), config.hidden.end());
  widths.push_back(config.classes);
  return DeviceMlp(gpu, (*model)->layout(), std::move(widths), precision);
}

DeviceMlp::DeviceMlp(const Gpu& gpu, ParamLayout layout, std::vector<std::uint32_t> widths, Precision precision)
    : gpu_(&gpu), layout_(std::move(layout)), widths_(std::move(widths)), precision_(precision) {
  for (std::size_t i = 0; i + 1 < widths_.size(); ++i) {
    Layer layer;
    layer.in = widths_[i];
    layer.out = widths_[i + 1];
    layer.weight = layout_.tensors()[2 * i].offset;
    layer.bias = layout_.tensors()[2 * i + 1].offset;
    layers_.push_back(std::move(layer));
  }
}

Result<void> DeviceMlp::make_room(std::uint32_t rows) {
  if (rows <= rows_max_) return {};
  const std::size_t widest = *std::max_element(widths_.begin() + 1, widths_.end());
  for (Layer& layer : layers_)
    if (Result<void> room = layer.activation.make_room(*gpu_, std::size_t{rows} * layer.out, "activations"); !room)
      return room;
  for (Result<void> room :
       {x_.make_room(*gpu_, std::size_t{rows} * inputs(), "a batch"),
        change_.make_room(*gpu_, rows * widest, "activations"),
        change_below_.make_room(*gpu_, rows * widest, "activations"),
        partial_.make_room(*gpu_, chunks_of(rows) * widest, "activations"), label_.make_room(*gpu_, rows, "a batch"),
        row_loss_.make_room(*gpu_, rows, "a batch"), total_loss_.make_room(*gpu_, 1, "a batch")})
    if (!room) return room;
  rows_max_ = rows;
  return {};
}

Result<void> DeviceMlp::forward(const float* params, std::span<const float> x, std::uint32_t rows) {
  RUMOR_CHECK(rows > 0);
  RUMOR_CHECK(x.size() == std::size_t{rows} * inputs());
  if (Result<void> room = make_room(rows); !room) return room;
  x_.write(x.data(), x.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    MatmulArgs product{};  // activation[rows][out] = input[rows][in] * weight[out][in]^T + bias
    product.rows = rows;
    product.columns = layer.out;
    product.depth = layer.in;
    product.a = input_of(i);
    product.b = params + layer.weight;
    product.b_turned = true;
    product.y = layer.activation.data();
    product.bias = params + layer.bias;
    product.precision = precision_;
    product.epilogue = i + 1 < layers_.size() ? Epilogue::bias_relu : Epilogue::bias;
    if (Result<void> done = gpu_->matmul(product); !done) return done;
  }
  return {};
}

// change_ becomes the gradient of the mean loss, total_loss_ the sum of all rows' losses.
void DeviceMlp::compare(std::span<const std::uint8_t> label, std::uint32_t rows) {
  RUMOR_CHECK(label.size() == rows);
  const std::vector<std::uint16_t> wanted(label.begin(), label.end());
  for (const std::uint16_t one : wanted) RUMOR_CHECK(one < classes());
  label_.write(wanted.data(), wanted.size());
  const std::size_t outputs = std::size_t{rows} * classes();
  gpu_->table().copy_within(gpu_->device(), change_.data(), layers_.back().activation.data(), outputs * sizeof(float));
  const CrossEntropyArgs args{{rows, classes()}, change_.data(),    label_.data(), 1.0f / static_cast<float>(rows),
                              row_loss_.data(),  total_loss_.data()};
  gpu_->table().model.cross_entropy(gpu_->device(), &args);
}

Result<void> DeviceMlp::backward(const float* params, std::uint32_t rows, float* gradient) {
  const ModelTable& model = gpu_->table().model;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    MatmulArgs product{};  // d weight[out][in] = change[rows][out]^T * input[rows][in]
    product.rows = layer.out;
    product.columns = layer.in;
    product.depth = rows;
    product.a = change_.data();
    product.a_turned = true;
    product.b = input_of(i);
    product.y = gradient + layer.weight;
    product.precision = precision_;
    if (Result<void> done = gpu_->matmul(product); !done) return done;
    model.column_sums(gpu_->device(), {rows, layer.out}, change_.data(), partial_.data(), gradient + layer.bias);
    if (i == 0) break;
    MatmulArgs below{};  // d input[rows][in] = change[rows][out] * weight[out][in], where ReLU let the input through
    below.rows = rows;
    below.columns = layer.in;
    below.depth = layer.out;
    below.a = change_.data();
    below.b = params + layer.weight;
    below.y = change_below_.data();
    below.precision = precision_;
    if (Result<void> done = gpu_->matmul(below); !done) return done;
    model.relu_backward(gpu_->device(), std::uint64_t{rows} * layer.in, input_of(i), change_below_.data());
    std::swap(change_, change_below_);
  }
  return {};
}

Result<float> DeviceMlp::loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                           const DeviceArray<float>& gradient) {
  RUMOR_CHECK(params.size() >= layout_.params() && gradient.size() >= layout_.params());
  if (!batch.soft.probability.empty())
    return Error{Errc::usage, "soft targets are not possible on a GPU yet; use --device cpu"};
  if (Result<void> done = forward(params.data(), batch.x, batch.rows); !done) return done.error();
  compare(batch.label, batch.rows);
  if (Result<void> done = backward(params.data(), batch.rows, gradient.data()); !done) return done.error();
  double total = 0;  // read last: until here the host has not waited
  if (Result<void> read = total_loss_.read(&total, 1); !read) return read.error();
  return static_cast<float>(total / batch.rows);
}

// What comes out of the last layer, on the host.
Result<std::vector<float>> DeviceMlp::outputs(const float* params, std::span<const float> x, std::uint32_t rows) {
  if (Result<void> done = forward(params, x, rows); !done) return done.error();
  std::vector<float> all(std::size_t{rows} * classes());
  if (Result<void> read = layers_.back().activation.read(all.data(), all.size()); !read) return read.error();
  return all;
}

Result<models::Evaluation> DeviceMlp::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
  RUMOR_CHECK(params.size() >= layout_.params());
  RUMOR_CHECK(batch.rows > 0 && batch.label.size() == batch.rows);
  constexpr std::uint32_t piece = 256;
  std::vector<double> exponentials(classes());
  double loss = 0;
  std::uint32_t right = 0;
  for (std::uint32_t first = 0; first < batch.rows; first += piece) {
    const std::uint32_t rows = std::min(piece, batch.rows - first);
    const Result<std::vector<float>> z =
        outputs(params.data(), batch.x.subspan(std::size_t{first} * inputs(), std::size_t{rows} * inputs()), rows);
    if (!z) return z.error();
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::span<const float> logits = std::span(*z).subspan(std::size_t{row} * classes(), classes());
      const std::uint8_t label = batch.label[first + row];
      RUMOR_CHECK(label < classes());
      const models::SoftmaxRow e = models::softmax_row(logits, exponentials);
      loss += models::surprise(logits, e, models::portable_log(e.sum), label);
      right += e.best == label && e.sum == e.sum;
    }
  }
  return models::Evaluation{loss / batch.rows, static_cast<double>(right) / batch.rows};
}

Result<void> DeviceMlp::predict(const DeviceArray<float>& params, const models::Batch& batch, std::span<float> out) {
  RUMOR_CHECK(params.size() >= layout_.params());
  RUMOR_CHECK(out.size() == std::size_t{batch.rows} * classes());
  const Result<std::vector<float>> z = outputs(params.data(), batch.x, batch.rows);
  if (!z) return z.error();
  std::vector<double> exponentials(classes());
  for (std::size_t at = 0; at < z->size(); at += classes()) {
    const models::SoftmaxRow e = models::softmax_row(std::span(*z).subspan(at, classes()), exponentials);
    for (std::uint32_t c = 0; c < classes(); ++c) out[at + c] = static_cast<float>(exponentials[c] / e.sum);
  }
  return {};
}

std::size_t DeviceMlp::memory_bytes() const {
  std::size_t bytes = device_bytes(x_, change_, change_below_, partial_, label_, row_loss_, total_loss_);
  for (const Layer& layer : layers_) bytes += layer.activation.bytes();
  return bytes;
}

}  // namespace rumor::gpu
