#include "gpu/models/gpt.h"

#include <utility>

namespace rumor::gpu {

Result<DeviceGpt> DeviceGpt::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                    std::size_t logits_max) {
  Result<ParamLayout> layout = models::gpt_layout(config);
  if (!layout) return layout.error();
  Result<models::GptShape> shape = models::gpt_shape(config, *layout);
  if (!shape) return shape.error();
  if (auto fine = check_possible(shape->vocabulary, shape->head_size(), "raise model.heads"); !fine)
    return fine.error();
  return DeviceGpt(gpu, std::move(layout).value(), std::move(shape).value(), precision, logits_max);
}

DeviceGpt::DeviceGpt(const Gpu& gpu, ParamLayout layout, models::GptShape shape, Precision precision,
                     std::size_t logits_max)
    : DeviceLanguageModel(gpu, std::move(layout),
                          {.vocabulary = static_cast<std::uint32_t>(shape.vocabulary),
                           .context = static_cast<std::uint32_t>(shape.context),
                           .width = static_cast<std::uint32_t>(shape.width),
                           .table = shape.table,
                           .head = shape.head,
                           .position = shape.position},
                          precision, logits_max),
      shape_(std::move(shape)),
      layers_(shape_.layer.size()) {}

void DeviceGpt::add_arrays(std::size_t rows, PlacedArrays& all) {
  const std::size_t d = rows * width(), heads = rows * static_cast<std::size_t>(shape_.heads);
  all.add(wide_, bf16(), 4 * d);
  all.add(dot_, bf16() ? 2 * heads : heads);
  all.add(partial_, chunks_of(static_cast<std::uint32_t>(rows)) * 4 * width());
  for (Layer& layer : layers_) {
    for (float** one : {&layer.middle, &layer.out}) all.add(*one, d);
    for (Numbers* one : {&layer.normed_1, &layer.looked, &layer.normed_2}) all.add(*one, bf16(), d);
    all.add(layer.qkv, bf16(), 3 * d);
    for (Numbers* one : {&layer.wide, &layer.activated}) all.add(*one, bf16(), 4 * d);
    for (float** one : {&layer.top, &layer.weight}) all.add(*one, heads);
    for (Norm* norm : {&layer.norm_1, &layer.norm_2})
      for (float** one : {&norm->mean, &norm->scale}) all.add(*one, rows);
  }
  for (float** one : {&norm_.mean, &norm_.scale}) all.add(*one, rows);
}

// ---- forward ----

// y = norm of x, or of x + more; that sum overwrites `more`.
void DeviceGpt::norm(const Norm& keeps, const float* x, float* more, std::uint32_t gain, std::uint32_t bias,
                     Numbers y) {
  const LayerNormArgs args{{rows(), width()}, x, more,       more,       params() + gain,
                           params() + bias,   y, keeps.mean, keeps.scale};
  slots().layer_norm(gpu().device(), &args);
}

// Normalises the sum before layer i, and computes that sum in the same pass.
void DeviceGpt::norm_sum(std::size_t i, const Norm& keeps, std::uint32_t gain, std::uint32_t bias, Numbers y) {
  if (i == 0) return norm(keeps, arrays().embedded, nullptr, gain, bias, y);
  norm(keeps, layers_[i - 1].middle, layers_[i - 1].out, gain, bias, y);
}

// y = x W + b. With `before`: it receives x W + b, and y = gelu(before).
void DeviceGpt::project(const Projected& p, Numbers y, Numbers before) {
  MatmulArgs args = product(rows(), p.out, p.in, p.x, factors(p.weight), y);
  args.bias = y.bf16 ? factors(p.bias) : params() + p.bias;
  args.before = before;
  args.epilogue = before.at != nullptr ? Epilogue::bias_gelu : Epilogue::bias;
  products().make(args);
}

AttentionArgs DeviceGpt::attention_of(const Layer& layer) const {
  const auto heads = static_cast<std::uint32_t>(shape_.heads), size = static_cast<std::uint32_t>(shape_.head_size());
  return {batch(), context(), heads, size, layer.qkv, layer.looked, layer.top, layer.weight};
}

void DeviceGpt::forward_layer(std::size_t i) {
  Layer& layer = layers_[i];
  const models::GptShape::Layer& at = shape_.layer[i];
  const std::uint32_t d = width();
  norm_sum(i, layer.norm_1, at.norm_1_gain, at.norm_1_bias, layer.normed_1);
  project({layer.normed_1, d, 3 * d, at.attention_weight, at.attention_bias}, layer.qkv, {});
  const AttentionArgs attention = attention_of(layer);
  slots().attention(gpu().device(), &attention);
  project({layer.looked, d, d, at.output_weight, at.output_bias}, layer.middle, {});
  norm(layer.norm_2, sum_before(i), layer.middle, at.norm_2_gain, at.norm_2_bias, layer.normed_2);
  project({layer.normed_2, d, 4 * d, at.wide_weight, at.wide_bias}, layer.activated, layer.wide);
  project({layer.activated, 4 * d, d, at.narrow_weight, at.narrow_bias}, layer.out, {});
}

void DeviceGpt::forward_layers() {
  for (std::size_t i = 0; i < layers_.size(); ++i) forward_layer(i);
  norm_sum(layers_.size(), norm_, shape_.norm_gain, shape_.norm_bias, arrays().normed);
}

// ---- backward ----

// `inner` is the gradient of the norm's output; the gradient of x is added to `change`.
void DeviceGpt::norm_back(const Norm& kept, const float* x, std::uint32_t gain, std::uint32_t bias, float* gradient) {
  Bf16* const rounded = static_cast<Bf16*>(arrays().rounded_change.at);
  const LayerNormChange args{{rows(), width()},
                             x,
                             params() + gain,
                             kept.mean,
                             kept.scale,
                             arrays().inner,
                             arrays().change,
                             rounded,
                             partial_,
                             gradient + gain,
                             gradient + bias};
  slots().layer_norm_backward(gpu().device(), &args);
}

// With `before`, x was gelu(before), and x_change becomes the gradient of `before`.
void DeviceGpt::project_back(const Projected& p, Numbers before, ConstNumbers change, float* gradient,
                             Numbers x_change) {
  MatmulArgs of_weight = product(p.in, p.out, rows(), p.x, change, gradient + p.weight);
  of_weight.a_turned = true;
  products().make(of_weight);
  slots().column_sums(gpu().device(), {rows(), p.out}, change, partial_, gradient + p.bias);
  MatmulArgs of_x = product(rows(), p.in, p.out, change, factors(p.weight), x_change);
  of_x.b_turned = true;
  of_x.before = before;
  of_x.epilogue = before.at != nullptr ? Epilogue::gelu_back : Epilogue::none;
  products().make(of_x);
}

// `change`: in, d loss / d the sum after this layer; out, d loss / d the sum before it.
void DeviceGpt::backward_layer(std::size_t i, float* gradient) {
  const Layer& layer = layers_[i];
  const models::GptShape::Layer& at = shape_.layer[i];
  const std::uint32_t d = width();
  const Numbers inner = arrays().inner;
  project_back({layer.activated, 4 * d, d, at.narrow_weight, at.narrow_bias}, layer.wide, change(), gradient, wide_);
  project_back({layer.normed_2, d, 4 * d, at.wide_weight, at.wide_bias}, {}, wide_, gradient, inner);
  norm_back(layer.norm_2, layer.middle, at.norm_2_gain, at.norm_2_bias, gradient);
  project_back({layer.looked, d, d, at.output_weight, at.output_bias}, {}, change(), gradient, inner);
  const AttentionChange attention{attention_of(layer), inner, dot_, wide_};
  slots().attention_backward(gpu().device(), &attention);
  project_back({layer.normed_1, d, 3 * d, at.attention_weight, at.attention_bias}, {}, wide_, gradient, inner);
  norm_back(layer.norm_1, sum_before(i), at.norm_1_gain, at.norm_1_bias, gradient);
}

void DeviceGpt::backward_layers(float* gradient) {
  norm_back(norm_, sum_before(layers_.size()), shape_.norm_gain, shape_.norm_bias, gradient);
  for (std::size_t i = layers_.size(); i-- > 0;) backward_layer(i, gradient);
}

}  // namespace rumor::gpu
