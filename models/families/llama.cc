#include "models/families/llama.h"

#include <algorithm>
#include <utility>

#include "models/families/adapters.h"
#include "models/kernels/activations.h"
#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_llama(const ModelConfig& config) {
  Result<ParamLayout> layout = llama_layout(config);
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<Llama>(std::move(*layout), llama_shape(config)));
}

Llama::Llama(ParamLayout layout, LlamaShape shape)
    : LanguageModel(std::move(layout),
                    {shape.vocabulary, shape.context, shape.width, shape.part, shape.head}),
      shape_(std::move(shape)),
      rotary_(shape_.context, shape_.head_size, shape_.rope_base, shape_.scaling),
      layers_(shape_.layer.size()) {
  RUMOR_CHECK(!layers_.empty());
}

TensorStart Llama::start_of(const TensorInfo& tensor) const {
  using StartKind = TensorStart::Kind;
  if (tensor.shape.size() < 2) return {tensor.name.ends_with("weight") ? StartKind::one : StartKind::zero};
  const std::uint32_t squared = 2500;  // 1 / 0.02^2
  if (tensor.name.ends_with("o_proj.weight") || tensor.name.ends_with("down_proj.weight"))
    return {StartKind::normal, 1, squared * 2 * shape_.part.units};
  return {StartKind::normal, 1, squared};
}

std::uint32_t Llama::hidden_matrices(const TensorInfo& tensor) const {
  if (tensor.shape.size() < 2 || (shape_.part.is_first() && tensor.offset == shape_.table)) return 0;
  return shape_.part.is_last() && tensor.offset == shape_.head ? 0 : 1;
}

void Llama::make_room(long rows) {
  if (rows <= rows_max_) return;
  rows_max_ = rows;
  const Attention::Shape attention = shape_.attention(1);
  const auto floats = [&](long columns) { return static_cast<std::size_t>(rows * columns); };
  const std::size_t d = floats(shape_.width), f = floats(shape_.feed_forward);
  const std::size_t qkv = floats(attention.row()), looked = floats(attention.width());
  std::vector<ActivationArray> arrays = {{&embedded_, d},    {&normed_, d},      {&change_, d},
                                         {&inner_, d},       {&qkv_change_, qkv}, {&looked_change_, looked},
                                         {&gate_change_, f}, {&up_change_, f},   {&active_change_, f}};
  for (Layer& layer : layers_)
    arrays.insert(arrays.end(), {{&layer.normed_1, d},
                                 {&layer.qkv, qkv},
                                 {&layer.looked, looked},
                                 {&layer.middle, d},
                                 {&layer.normed_2, d},
                                 {&layer.gate, f},
                                 {&layer.up, f},
                                 {&layer.active, f},
                                 {&layer.out, d}});
  place_activations(memory_, arrays);
}

// ---- forward

void Llama::project(const float* params, Linear::Shape shape, const float* x, std::uint32_t weight, const float* bias,
                    const float* residual, float* y) {
  linear_.forward(parallel(), shape, x, params + weight, bias, residual, y);
  if (adapters()) adapters()->forward(parallel(), weight, shape.rows, shape.y_row, x, y);
}

// x: [rows][width] -> qkv: queries, keys and values side by side.
void Llama::project_qkv(const float* params, const LlamaShape::Layer& at, long rows, const float* x, float* qkv) {
  const Attention::Shape attention = shape_.attention(1);
  const long d = shape_.width, row = attention.row(), queries = attention.width();
  const long keys = shape_.groups * shape_.head_size;
  const auto one = [&](long out, std::uint32_t weight, std::uint32_t bias, float* y) {
    project(params, {rows, d, out, row}, x, weight, shape_.qkv_bias ? params + bias : nullptr, nullptr, y);
  };
  one(queries, at.query, at.query_bias, qkv);
  one(keys, at.key, at.key_bias, qkv + queries);
  one(keys, at.value, at.value_bias, qkv + queries + keys);
}

// layer.middle -> layer.out
void Llama::feed_forward(const float* params, const LlamaShape::Layer& at, long rows, Layer& layer) {
  const long d = shape_.width, f = shape_.feed_forward;
  layer.feed_forward_norm.forward(parallel(), rows, d, shape_.epsilon, layer.middle, params + at.feed_forward_gain,
                                  layer.normed_2);
  project(params, {rows, d, f}, layer.normed_2, at.gate, nullptr, nullptr, layer.gate);
  project(params, {rows, d, f}, layer.normed_2, at.up, nullptr, nullptr, layer.up);
  each_range(parallel(), rows * f, 16, [&](Range part) {
    kernels().sequence->swiglu(part.size(), layer.gate + part.begin, layer.up + part.begin,
                               layer.active + part.begin);
  });
  project(params, {rows, f, d}, layer.active, at.down, nullptr, layer.middle, layer.out);
}

// x: [rows][width], the sum before this layer.
void Llama::forward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x) {
  Layer& layer = layers_[index];
  const LlamaShape::Layer& at = shape_.layer[index];
  const long rows = attention.batch * attention.context, d = shape_.width;
  layer.attention_norm.forward(parallel(), rows, d, shape_.epsilon, x, params + at.attention_gain, layer.normed_1);
  project_qkv(params, at, rows, layer.normed_1, layer.qkv);
  rotary_.forward(parallel(), rows, shape_.heads + shape_.groups, layer.qkv, attention.row());
  layer.attention.forward(parallel(), attention, layer.qkv, layer.looked);
  project(params, {rows, attention.width(), d}, layer.looked, at.output, nullptr, x, layer.middle);
  feed_forward(params, at, rows, layer);
}

Llama::Top Llama::run(const float* params, const TokenBatch& batch, const float* below, const float*) {
  const long rows = batch.rows(), d = shape_.width;
  make_room(rows);
  const float* x = below;
  if (shape_.part.is_first()) {
    embed(parallel(), batch, d, params + shape_.table, nullptr, embedded_);
    x = embedded_;
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    forward_layer(params, i, shape_.attention(batch.batch), x);
    x = layers_[i].out;
  }
  if (!shape_.part.is_last()) return {x, change_};
  norm_.forward(parallel(), rows, d, shape_.epsilon, x, params + shape_.gain, normed_);
  return {normed_, inner_};
}

// ---- backward

void Llama::project_back(const float* params, Linear::Shape shape, const float* x, std::uint32_t weight,
                         const float* change, float* gradient, float* bias_gradient, float* x_change, Start start) {
  Linear::backward(parallel(), shape, x, params + weight, change, place(gradient, weight), bias_gradient, x_change,
                   start);
  if (adapters()) adapters()->backward(parallel(), weight, shape.rows, shape.y_row, x, change, x_change);
}

// qkv_change_ -> inner_, d loss / d x.
void Llama::project_qkv_back(const float* params, const LlamaShape::Layer& at, long rows, const float* x,
                             float* gradient) {
  const Attention::Shape attention = shape_.attention(1);
  const long d = shape_.width, row = attention.row(), queries = attention.width();
  const long keys = shape_.groups * shape_.head_size;
  const auto back = [&](long out, std::uint32_t weight, std::uint32_t bias, const float* change, Start start) {
    project_back(params, {rows, d, out, row}, x, weight, change, gradient,
                 shape_.qkv_bias ? place(gradient, bias) : nullptr, inner_, start);
  };
  back(queries, at.query, at.query_bias, qkv_change_, Start::zero);
  back(keys, at.key, at.key_bias, qkv_change_ + queries, Start::output);
  back(keys, at.value, at.value_bias, qkv_change_ + queries + keys, Start::output);
}

// change_: in, d loss / d layer.out; out, d loss / d layer.middle.
void Llama::feed_back(const float* params, const LlamaShape::Layer& at, long rows, Layer& layer, float* gradient) {
  const long d = shape_.width, f = shape_.feed_forward;
  project_back(params, {rows, f, d}, layer.active, at.down, change_, gradient, nullptr, active_change_, Start::zero);
  each_range(parallel(), rows * f, 16, [&](Range part) {
    kernels().sequence->swiglu_backward(part.size(), layer.gate + part.begin, layer.up + part.begin,
                                        active_change_ + part.begin, gate_change_ + part.begin,
                                        up_change_ + part.begin);
  });
  project_back(params, {rows, d, f}, layer.normed_2, at.gate, gate_change_, gradient, nullptr, inner_, Start::zero);
  project_back(params, {rows, d, f}, layer.normed_2, at.up, up_change_, gradient, nullptr, inner_, Start::output);
  layer.feed_forward_norm.backward(parallel(), rows, d, layer.middle, params + at.feed_forward_gain, inner_, change_,
                                   place(gradient, at.feed_forward_gain));
}

// change_: in, d loss / d this layer's sum; out, d loss / d the sum before it, x.
void Llama::backward_layer(const float* params, std::size_t index, Attention::Shape attention, const float* x,
                           float* gradient) {
  Layer& layer = layers_[index];
  const LlamaShape::Layer& at = shape_.layer[index];
  const long rows = attention.batch * attention.context, d = shape_.width;
  feed_back(params, at, rows, layer, gradient);
  project_back(params, {rows, attention.width(), d}, layer.looked, at.output, change_, gradient, nullptr,
               looked_change_, Start::zero);
  layer.attention.backward(parallel(), attention, layer.qkv, layer.looked, looked_change_, qkv_change_);
  rotary_.backward(parallel(), rows, shape_.heads + shape_.groups, qkv_change_, attention.row());
  project_qkv_back(params, at, rows, layer.normed_1, gradient);
  layer.attention_norm.backward(parallel(), rows, d, x, params + at.attention_gain, inner_, change_,
                                place(gradient, at.attention_gain));
}

// inner_: in the last part d loss / d normed_; change_: in the others d loss / d the sum after the last
// layer.
void Llama::run_back(const float* params, const TokenBatch& batch, const float* below, float* gradient,
                     float* below_change) {
  const long rows = batch.rows(), d = shape_.width;
  if (shape_.part.is_last()) {
    std::fill_n(change_, rows * d, 0.0f);
    norm_.backward(parallel(), rows, d, layers_.back().out, params + shape_.gain, inner_, change_,
                   place(gradient, shape_.gain));
  }
  const float* first = shape_.part.is_first() ? embedded_ : below;
  for (std::size_t i = layers_.size(); i-- > 0;)
    backward_layer(params, i, shape_.attention(batch.batch), i == 0 ? first : layers_[i - 1].out, gradient);
  if (below_change) std::copy_n(change_, rows * d, below_change);
  if (!shape_.part.is_first() || gradient == nullptr) return;
  if (!shape_.tied_head) std::fill_n(gradient + shape_.table, shape_.vocabulary * d, 0.0f);
  embed_backward(parallel(), batch, d, change_, gradient + shape_.table, nullptr);
}

std::size_t Llama::memory_bytes() const {
  std::size_t bytes = capacity_bytes(memory_) + norm_.memory_bytes() + own_memory_bytes() + linear_.memory_bytes();
  bytes += rotary_.memory_bytes();
  for (const Layer& layer : layers_)
    bytes += layer.attention_norm.memory_bytes() + layer.feed_forward_norm.memory_bytes() +
             layer.attention.memory_bytes();
  return bytes;
}

}  // namespace rumor::models
