#include "gpu/models/dense.h"

#include <algorithm>

#include "models/kernels/portable_math.h"
#include "models/kernels/softmax_row.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

DeviceDense::DeviceDense(const Gpu& gpu, const ParamLayout& layout, std::vector<std::uint32_t> widths,
                         Precision precision)
    : gpu_(&gpu), widths_(std::move(widths)), products_(gpu, precision) {
  const std::size_t first = layout.tensors().size() - 2 * (widths_.size() - 1);
  for (std::size_t i = 0; i + 1 < widths_.size(); ++i) {
    Layer layer;
    layer.in = widths_[i];
    layer.out = widths_[i + 1];
    layer.weight = layout.tensors()[first + 2 * i].offset;
    layer.bias = layout.tensors()[first + 2 * i + 1].offset;
    layers_.push_back(std::move(layer));
  }
}

Result<void> DeviceDense::make_room(std::uint32_t rows) {
  if (rows <= rows_max_) return {};
  const std::size_t widest = *std::max_element(widths_.begin() + 1, widths_.end());
  for (Layer& layer : layers_)
    if (Result<void> room = layer.activation.make_room(*gpu_, std::size_t{rows} * layer.out, "activations"); !room)
      return room;
  for (Result<void> room : {change_.make_room(*gpu_, rows * widest, "activations"),
                            change_below_.make_room(*gpu_, rows * widest, "activations"),
                            partial_.make_room(*gpu_, chunks_of(rows) * widest, "activations"),
                            label_.make_room(*gpu_, rows, "a batch"), row_loss_.make_room(*gpu_, rows, "a batch"),
                            total_loss_.make_room(*gpu_, 1, "a batch")})
    if (!room) return room;
  rows_max_ = rows;
  return {};
}

void DeviceDense::send(std::span<const std::uint8_t> label, std::uint32_t all_rows) {
  RUMOR_CHECK(label.size() <= rows_max_);
  const std::vector<std::uint16_t> wanted(label.begin(), label.end());
  for (const std::uint16_t one : wanted) RUMOR_CHECK(one < classes());
  label_.write(wanted.data(), wanted.size());
  all_rows_ = all_rows;
}

void DeviceDense::forward(const float* params, const float* x, std::uint32_t rows) {
  RUMOR_CHECK(rows > 0 && rows <= rows_max_);
  x_ = x;
  rows_ = rows;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    // activation[rows][out] = input[rows][in] * weight[out][in]^T + bias
    MatmulArgs args =
        product(rows, layer.out, layer.in, input_of(i), params + layer.weight, layer.activation.data());
    args.b_turned = true;
    args.bias = params + layer.bias;
    args.epilogue = i + 1 < layers_.size() ? Epilogue::bias_relu : Epilogue::bias;
    products_.make(args);
  }
}

// change_ becomes the gradient, total_loss_ the sum of these rows' losses.
void DeviceDense::compare() {
  const std::size_t outputs = std::size_t{rows_} * classes();
  gpu_->table().copy_within(gpu_->device(), change_.data(), layers_.back().activation.data(), outputs * sizeof(float));
  const float share = 1.0f / static_cast<float>(all_rows_);
  const CrossEntropyArgs args{{rows_, classes()}, change_.data(),   label_.data(), share,
                              row_loss_.data(),   total_loss_.data()};
  gpu_->table().model.cross_entropy(gpu_->device(), &args);
}

void DeviceDense::backward(const float* params, float* gradient, float* x_change) {
  const ModelTable& model = gpu_->table().model;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    // d weight[out][in] = change[rows][out]^T * input[rows][in]
    MatmulArgs of_weight =
        product(layer.out, layer.in, rows_, change_.data(), input_of(i), gradient + layer.weight);
    of_weight.a_turned = true;
    products_.make(of_weight);
    model.column_sums(gpu_->device(), {rows_, layer.out}, change_.data(), partial_.data(), gradient + layer.bias);
    // d input[rows][in] = change[rows][out] * weight[out][in], where ReLU let the input through
    float* const below = i == 0 ? x_change : change_below_.data();
    if (below == nullptr) break;
    products_.make(product(rows_, layer.in, layer.out, change_.data(), params + layer.weight, below));
    if (i == 0) break;
    model.relu_backward(gpu_->device(), std::uint64_t{rows_} * layer.in, input_of(i), below);
    std::swap(change_, change_below_);
  }
}

Result<float> DeviceDense::loss() {
  double total = 0;
  if (Result<void> read = total_loss_.read(&total, 1); !read) return read.error();
  return static_cast<float>(total / all_rows_);
}

Result<std::vector<float>> DeviceDense::outputs() {
  if (auto made = products_.outcome(); !made) return made.error();
  std::vector<float> all(std::size_t{rows_} * classes());
  if (Result<void> read = layers_.back().activation.read(all.data(), all.size()); !read) return read.error();
  return all;
}

std::size_t DeviceDense::memory_bytes() const {
  std::size_t bytes = device_bytes(change_, change_below_, partial_, label_, row_loss_, total_loss_);
  for (const Layer& layer : layers_) bytes += layer.activation.bytes();
  return bytes;
}

void Tally::add(std::span<const float> logits, std::span<const std::uint8_t> label) {
  const std::size_t classes = logits.size() / label.size();
  exponentials_.resize(classes);
  for (std::size_t row = 0; row < label.size(); ++row) {
    const std::span<const float> own = logits.subspan(row * classes, classes);
    RUMOR_CHECK(label[row] < classes);
    const models::SoftmaxRow e = models::softmax_row(own, exponentials_);
    loss_ += models::surprise(own, e, models::portable_log(e.sum), label[row]);
    right_ += e.best == label[row] && e.sum == e.sum;
  }
  rows_ += label.size();
}

models::Evaluation Tally::evaluation() const {
  const auto rows = static_cast<double>(rows_);
  return {loss_ / rows, static_cast<double>(right_) / rows};
}

void probabilities(std::span<const float> logits, std::uint32_t classes, std::span<float> out) {
  std::vector<double> exponentials(classes);
  for (std::size_t at = 0; at < logits.size(); at += classes) {
    const models::SoftmaxRow e = models::softmax_row(logits.subspan(at, classes), exponentials);
    for (std::uint32_t c = 0; c < classes; ++c) out[at + c] = static_cast<float>(exponentials[c] / e.sum);
  }
}

}  // namespace rumor::gpu
