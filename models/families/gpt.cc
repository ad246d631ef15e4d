#include "models/families/gpt.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "models/families/adapters.h"
#include "models/kernels/activations.h"
#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_gpt(const ModelConfig& config) {
  Result<ParamLayout> layout = gpt_layout(config);
  if (!layout) return layout.error();
  Result<GptShape> shape = gpt_shape(config, *layout);
  if (!shape) return shape.error();
  return std::unique_ptr<Model>(std::make_unique<Gpt>(std::move(*layout), std::move(*shape)));
}

Gpt::Gpt(ParamLayout layout, GptShape shape)
    : LanguageModel(std::move(layout),
                    {shape.vocabulary, shape.context, shape.width, shape.part, shape.head}),
      shape_(std::move(shape)),
      layers_(shape_.layer.size()) {
  RUMOR_CHECK(!layers_.empty());
}

TensorStart Gpt::start_of(const TensorInfo& tensor) const {
  using StartKind = TensorStart::Kind;
  if (tensor.shape.size() < 2) return {tensor.name.ends_with("weight") ? StartKind::one : StartKind::zero};
  const std::uint32_t squared = 2500;  // 1 / 0.02^2
  if (tensor.name.ends_with("c_proj.weight")) return {StartKind::normal, 1, squared * 2 * shape_.part.units};
  return {StartKind::normal, 1, squared};
}

std::uint32_t Gpt::hidden_matrices(const TensorInfo& tensor) const {
  if (tensor.shape.size() < 2) return 0;
  if (shape_.part.is_first() && (tensor.offset == shape_.table || tensor.offset == shape_.position)) return 0;
  if (shape_.part.is_last() && tensor.offset == shape_.head) return 0;
  return tensor.name.ends_with("c_attn.weight") ? 3 : 1;
}

void Gpt::make_room(long rows) {
  if (rows <= rows_max_) return;
  rows_max_ = rows;
  const auto d = static_cast<std::size_t>(rows * shape_.width);
  std::vector<ActivationArray> arrays = {{&embedded_, d}, {&normed_, d}, {&change_, d}, {&inner_, d}, {&wide_, 4 * d}};
  for (Layer& layer : layers_)
    arrays.insert(arrays.end(), {{&layer.normed_1, d},
                                 {&layer.qkv, 3 * d},
                                 {&layer.looked, d},
                                 {&layer.middle, d},
                                 {&layer.normed_2, d},
                                 {&layer.wide, 4 * d},
                                 {&layer.activated, 4 * d},
                                 {&layer.out, d}});
  place_activations(memory_, arrays);
}

// An adapter adds to y before the GELU, so the GELU is then no part of the product.
void Gpt::project(const float* params, Projection::Shape shape, const float* x, std::uint32_t weight,
                  std::uint32_t bias, const float* residual, float* y, float* activated) {
  const bool adapted = adapters() != nullptr && adapters()->has(weight);
  Projection::forward(parallel(), shape, x, params + weight, params + bias, residual, y, adapted ? nullptr : activated);
  if (!adapted) return;
  adapters()->forward(parallel(), weight, shape.rows, shape.out, x, y);
  each_range(parallel(), activated ? shape.rows * shape.out : 0, 16, [&](Range part) {
    kernels().sequence->gelu(part.size(), y + part.begin, activated + part.begin);
  });
}

void Gpt::project_back(const float* params, Projection::Shape shape, const float* x, const float* before,
                       std::uint32_t weight, std::uint32_t bias, const float* change, float* gradient,
                       float* x_change) {
  const bool adapted = adapters() != nullptr && adapters()->has(weight);
  projection_.backward(parallel(), shape, x, adapted ? nullptr : before, params + weight, change,
                       place(gradient, weight), place(gradient, bias), x_change);
  if (!adapted) return;
  adapters()->backward(parallel(), weight, shape.rows, shape.out, x, change, x_change);
  each_range(parallel(), before ? shape.rows * shape.in : 0, 16, [&](Range part) {
    kernels().sequence->gelu_backward(part.size(), before + part.begin, x_change + part.begin);
  });
}

// x: [rows][d], the sum before this layer.
void Gpt::forward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x) {
  Layer& layer = layers_[index];
  const GptShape::Layer& at = shape_.layer[index];
  const long rows = attention.batch * attention.context, d = shape_.width;
  layer.norm_1.forward(parallel(), rows, d, x, params + at.norm_1_gain, params + at.norm_1_bias,
                       layer.normed_1);
  project(params, {rows, d, 3 * d}, layer.normed_1, at.attention_weight, at.attention_bias, nullptr, layer.qkv,
          nullptr);
  layer.attention.forward(parallel(), attention, layer.qkv, layer.looked);
  project(params, {rows, d, d}, layer.looked, at.output_weight, at.output_bias, x, layer.middle, nullptr);

  layer.norm_2.forward(parallel(), rows, d, layer.middle, params + at.norm_2_gain, params + at.norm_2_bias,
                       layer.normed_2);
  project(params, {rows, d, 4 * d}, layer.normed_2, at.wide_weight, at.wide_bias, nullptr, layer.wide, layer.activated);
  project(params, {rows, 4 * d, d}, layer.activated, at.narrow_weight, at.narrow_bias, layer.middle, layer.out,
          nullptr);
}

Gpt::Top Gpt::run(const float* params, const TokenBatch& batch, const float* below, const float*) {
  const long rows = batch.rows(), d = shape_.width;
  const Attention::Shape attention{batch.batch, batch.context, shape_.heads, shape_.head_size()};
  make_room(rows);
  const float* x = below;
  if (shape_.part.is_first()) {
    embed(parallel(), batch, d, params + shape_.table, params + shape_.position, embedded_);
    x = embedded_;
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    forward_layer(params, i, attention, x);
    x = layers_[i].out;
  }
  if (!shape_.part.is_last()) return {x, change_};
  norm_.forward(parallel(), rows, d, x, params + shape_.norm_gain, params + shape_.norm_bias, normed_);
  return {normed_, inner_};
}

// change_: in, d loss / d this layer's sum; out, d loss / d the sum before it, x.
void Gpt::backward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x,
                         float* gradient) {
  Layer& layer = layers_[index];
  const GptShape::Layer& at = shape_.layer[index];
  const long rows = attention.batch * attention.context, d = shape_.width;
  float *change = change_, *inner = inner_, *wide = wide_;

  project_back(params, {rows, 4 * d, d}, layer.activated, layer.wide, at.narrow_weight, at.narrow_bias, change,
               gradient, wide);
  project_back(params, {rows, d, 4 * d}, layer.normed_2, nullptr, at.wide_weight, at.wide_bias, wide, gradient, inner);
  layer.norm_2.backward(parallel(), rows, d, layer.middle, params + at.norm_2_gain, inner, change,
                        place(gradient, at.norm_2_gain), place(gradient, at.norm_2_bias));

  project_back(params, {rows, d, d}, layer.looked, nullptr, at.output_weight, at.output_bias, change, gradient, inner);
  layer.attention.backward(parallel(), attention, layer.qkv, layer.looked, inner, wide);
  project_back(params, {rows, d, 3 * d}, layer.normed_1, nullptr, at.attention_weight, at.attention_bias, wide,
               gradient, inner);
  layer.norm_1.backward(parallel(), rows, d, x, params + at.norm_1_gain, inner, change,
                        place(gradient, at.norm_1_gain), place(gradient, at.norm_1_bias));
}

// inner_: in the last part d loss / d normed_; change_: in the others d loss / d the sum after the last
// layer.
void Gpt::run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                   float* below_change) {
  const long rows = batch.rows(), d = shape_.width;
  const Attention::Shape attention{batch.batch, batch.context, shape_.heads, shape_.head_size()};
  if (shape_.part.is_last()) {
    std::fill_n(change_, rows * d, 0.0f);
    norm_.backward(parallel(), rows, d, layers_.back().out, params + shape_.norm_gain, inner_, change_,
                   place(gradient, shape_.norm_gain), place(gradient, shape_.norm_bias));
  }
  const float* first = shape_.part.is_first() ? embedded_ : below;
  for (std::size_t i = layers_.size(); i-- > 0;)
    backward_layer(params, i, attention, i == 0 ? first : layers_[i - 1].out, gradient);
  if (below_change) std::copy_n(change_, rows * d, below_change);
  if (!shape_.part.is_first() || gradient == nullptr) return;
  if (!shape_.tied_head) std::fill_n(gradient + shape_.table, shape_.vocabulary * d, 0.0f);
  embed_backward(parallel(), batch, d, change_, gradient + shape_.table, gradient + shape_.position);
}

std::size_t Gpt::memory_bytes() const {
  std::size_t bytes = capacity_bytes(memory_) + norm_.memory_bytes();
  bytes += own_memory_bytes() + projection_.memory_bytes();
  for (const Layer& layer : layers_)
    bytes += layer.norm_1.memory_bytes() + layer.norm_2.memory_bytes() + layer.attention.memory_bytes();
  return bytes;
}

}  // namespace rumor::models
