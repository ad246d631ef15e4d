#include "gpu/models/llama.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace rumor::gpu {

Result<DeviceLlama> DeviceLlama::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                        std::size_t logits_max) {
  Result<ParamLayout> layout = models::llama_layout(config);
  if (!layout) return layout.error();
  models::LlamaShape shape = models::llama_shape(config);
  if (auto fine = check_possible(shape.vocabulary, shape.head_size, "lower model.head_size"); !fine)
    return fine.error();
  DeviceLlama llama(gpu, std::move(layout).value(), std::move(shape), precision, logits_max);
  if (auto made = llama.make_rotations(); !made) return made.error();
  return llama;
}

DeviceLlama::DeviceLlama(const Gpu& gpu, ParamLayout layout, models::LlamaShape shape, Precision precision,
                         std::size_t logits_max)
    : DeviceLanguageModel(gpu, std::move(layout),
                          {.vocabulary = static_cast<std::uint32_t>(shape.vocabulary),
                           .context = static_cast<std::uint32_t>(shape.context),
                           .width = static_cast<std::uint32_t>(shape.width),
                           .table = shape.table,
                           .head = shape.head},
                          precision, logits_max),
      shape_(std::move(shape)),
      layers_(shape_.layer.size()) {
  const std::uint32_t d = width();
  for (const Offsets& at : shape_.layer) {  // what one product reads lies side by side
    RUMOR_CHECK(at.up == at.gate + feed_forward() * d);
    if (shape_.qkv_bias) continue;
    RUMOR_CHECK(at.key == at.query + looked_row() * d && at.value == at.key + keys_row() * d);
  }
}

// The CPU's numbers.
Result<void> DeviceLlama::make_rotations() {
  const models::Rotary rotary(shape_.context, shape_.head_size, shape_.rope_base, shape_.scaling);
  const std::size_t count = rotary.cosine().size();
  for (Result<void> room :
       {cosine_.make_room(gpu(), count, "rotations"), sine_.make_room(gpu(), count, "rotations")})
    if (!room) return room;
  cosine_.write(rotary.cosine().data(), count);
  sine_.write(rotary.sine().data(), count);
  return {};
}

void DeviceLlama::add_arrays(std::size_t rows, PlacedArrays& all) {
  const std::size_t d = rows * width(), f = rows * feed_forward(), heads_of_rows = rows * heads();
  const std::size_t qkv = rows * qkv_row(), looked = rows * looked_row();
  const std::size_t summed = std::max(width(), shape_.qkv_bias ? qkv_row() : 0);
  all.add(wide_, bf16(), std::max(2 * f, qkv));
  all.add(narrow_, bf16(), std::max(f, looked));
  all.add(dot_, bf16() ? 2 * heads_of_rows : heads_of_rows);
  all.add(scale_, rows);
  all.add(partial_, chunks_of(static_cast<std::uint32_t>(rows)) * summed);
  if (shape_.qkv_bias) {
    all.add(side_by_side_, bf16(), std::size_t{qkv_row()} * width());
    all.add(bias_change_, qkv_row());
  }
  for (Layer& layer : layers_) {
    for (float** one : {&layer.middle, &layer.out}) all.add(*one, d);
    for (Numbers* one : {&layer.normed_1, &layer.normed_2}) all.add(*one, bf16(), d);
    all.add(layer.qkv, bf16(), qkv);
    all.add(layer.looked, bf16(), looked);
    all.add(layer.wide, bf16(), 2 * f);
    all.add(layer.active, bf16(), f);
    for (float** one : {&layer.top, &layer.weight}) all.add(*one, heads_of_rows);
    for (float** one : {&layer.scale_1, &layer.scale_2}) all.add(*one, rows);
  }
}

// ---- products: weights are stored [out][in]

// y = x W^T
void DeviceLlama::project(ConstNumbers x, std::uint32_t in, std::uint32_t out, ConstNumbers weight, Numbers y) {
  MatmulArgs args = product(rows(), out, in, x, weight, y);
  args.b_turned = true;
  products().make(args);
}

// gradient [out][in] = change^T x
void DeviceLlama::weight_back(ConstNumbers x, std::uint32_t in, std::uint32_t out, ConstNumbers change,
                              float* gradient) {
  MatmulArgs args = product(out, in, rows(), change, x, gradient);
  args.a_turned = true;
  products().make(args);
}

// x_change = change W
void DeviceLlama::input_back(std::uint32_t in, std::uint32_t out, ConstNumbers change, ConstNumbers weight,
                             Numbers x_change) {
  products().make(product(rows(), in, out, change, weight, x_change));
}

// ---- forward

// y = norm of x, or of x + more; that sum overwrites `more`.
void DeviceLlama::norm(float* scale, const float* x, float* more, std::uint32_t gain, Numbers y) {
  const RmsNormArgs args{{rows(), width()}, x, more, more, params() + gain, shape_.epsilon, y, scale};
  gpu().table().llama.rms_norm(gpu().device(), &args);
}

// Normalises the sum before layer i, and computes that sum in the same pass.
void DeviceLlama::norm_sum(std::size_t i, float* scale, std::uint32_t gain, Numbers y) {
  if (i == 0) return norm(scale, arrays().embedded, nullptr, gain, y);
  norm(scale, layers_[i - 1].middle, layers_[i - 1].out, gain, y);
}

// The weights of queries, keys and values, [qkv_row()][d].
ConstNumbers DeviceLlama::qkv_weights(const Offsets& at) {
  if (!shape_.qkv_bias) return factors(at.query);
  const std::size_t first = std::size_t{looked_row()} * width(), each = std::size_t{keys_row()} * width();
  const auto copy = [&](std::size_t to, std::uint32_t from, std::size_t count) {
    gpu().table().copy_within(gpu().device(), side_by_side_.from(to).at, factors(from).at, side_by_side_.bytes(count));
  };
  copy(0, at.query, first);
  copy(first, at.key, each);
  copy(first + each, at.value, each);
  return side_by_side_;
}

AttentionArgs DeviceLlama::attention_of(const Layer& layer) const {
  return {batch(), context(), heads(), head_size(), layer.qkv, layer.looked, layer.top, layer.weight, groups()};
}

RotaryArgs DeviceLlama::rotary_of(const Offsets& at, Numbers qkv) const {
  const auto bias = [&](std::uint32_t offset) { return shape_.qkv_bias ? params() + offset : nullptr; };
  return {rows(),         context(),    heads(),
          groups(),       head_size(),  cosine_.data(),
          sine_.data(),   bias(at.query_bias), bias(at.key_bias),
          bias(at.value_bias), qkv};
}

void DeviceLlama::forward_layer(std::size_t i) {
  Layer& layer = layers_[i];
  const Offsets& at = shape_.layer[i];
  const std::uint32_t d = width(), f = feed_forward();
  norm_sum(i, layer.scale_1, at.attention_gain, layer.normed_1);
  project(layer.normed_1, d, qkv_row(), qkv_weights(at), layer.qkv);
  const RotaryArgs rotary = rotary_of(at, layer.qkv);
  gpu().table().llama.rotary(gpu().device(), &rotary);
  const AttentionArgs attention = attention_of(layer);
  slots().attention(gpu().device(), &attention);
  project(layer.looked, looked_row(), d, factors(at.output), layer.middle);
  norm(layer.scale_2, sum_before(i), layer.middle, at.feed_forward_gain, layer.normed_2);
  project(layer.normed_2, d, 2 * f, factors(at.gate), layer.wide);
  gpu().table().llama.swiglu(gpu().device(), {rows(), f}, layer.wide, layer.active);
  project(layer.active, f, d, factors(at.down), layer.out);
}

void DeviceLlama::forward_layers() {
  for (std::size_t i = 0; i < layers_.size(); ++i) forward_layer(i);
  norm_sum(layers_.size(), scale_, shape_.gain, arrays().normed);
}

// ---- backward

// `inner` is the gradient of the norm's output; the gradient of x is added to `change`.
void DeviceLlama::norm_back(const float* scale, const float* x, std::uint32_t gain, float* gradient) {
  Bf16* const rounded = static_cast<Bf16*>(arrays().rounded_change.at);
  const RmsNormChange args{{rows(), width()}, x,       params() + gain, scale,          arrays().inner,
                           arrays().change,   rounded, partial_,        gradient + gain};
  gpu().table().llama.rms_norm_backward(gpu().device(), &args);
}

// `change`, of layer.out, stays as it is; `inner` becomes that of layer.normed_2.
void DeviceLlama::feed_back(const Layer& layer, const Offsets& at, float* gradient) {
  const std::uint32_t d = width(), f = feed_forward();
  weight_back(layer.active, f, d, change(), gradient + at.down);
  input_back(f, d, change(), factors(at.down), narrow_);
  gpu().table().llama.swiglu_backward(gpu().device(), {rows(), f}, layer.wide, narrow_, wide_);
  weight_back(layer.normed_2, d, 2 * f, wide_, gradient + at.gate);
  input_back(d, 2 * f, wide_, factors(at.gate), arrays().inner);
}

// wide_, the change of queries, keys and values -> inner, that of x.
void DeviceLlama::qkv_back(const Offsets& at, ConstNumbers x, float* gradient) {
  const std::uint32_t d = width(), row = qkv_row();
  input_back(d, row, wide_, qkv_weights(at), arrays().inner);
  if (!shape_.qkv_bias) return weight_back(x, d, row, wide_, gradient + at.query);
  slots().column_sums(gpu().device(), {rows(), row}, wide_, partial_, bias_change_);
  struct Part {
    std::uint32_t out, weight, bias;
  };
  std::uint32_t begin = 0;
  for (const Part& part : {Part{looked_row(), at.query, at.query_bias}, Part{keys_row(), at.key, at.key_bias},
                           Part{keys_row(), at.value, at.value_bias}}) {
    MatmulArgs args = product(part.out, d, rows(), wide_.from(begin), x, gradient + part.weight);
    args.a_turned = true;
    args.a_stride = row;
    products().make(args);
    gpu().table().copy_within(gpu().device(), gradient + part.bias, bias_change_ + begin, part.out * sizeof(float));
    begin += part.out;
  }
}

// `change`: in, d loss / d the sum after this layer; out, d loss / d the sum before it.
void DeviceLlama::backward_layer(std::size_t i, float* gradient) {
  const Layer& layer = layers_[i];
  const Offsets& at = shape_.layer[i];
  feed_back(layer, at, gradient);
  norm_back(layer.scale_2, layer.middle, at.feed_forward_gain, gradient);
  weight_back(layer.looked, looked_row(), width(), change(), gradient + at.output);
  input_back(looked_row(), width(), change(), factors(at.output), narrow_);
  const AttentionChange attention{attention_of(layer), narrow_, dot_, wide_};
  slots().attention_backward(gpu().device(), &attention);
  const RotaryArgs rotary = rotary_of(at, wide_);
  gpu().table().llama.rotary_backward(gpu().device(), &rotary);
  qkv_back(at, layer.normed_1, gradient);
  norm_back(layer.scale_1, sum_before(i), at.attention_gain, gradient);
}

void DeviceLlama::backward_layers(float* gradient) {
  norm_back(scale_, sum_before(layers_.size()), shape_.gain, gradient);
  for (std::size_t i = layers_.size(); i-- > 0;) backward_layer(i, gradient);
}

std::size_t DeviceLlama::memory_bytes() const {
  return DeviceLanguageModel::memory_bytes() + device_bytes(cosine_, sine_);
}

}  // namespace rumor::gpu
