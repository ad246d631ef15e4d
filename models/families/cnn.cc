#include "models/families/cnn.h"

#include <algorithm>
#include <atomic>

#include "models/kernels/kernels.h"
#include "models/layers/pool.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {

namespace {

using Kind = CnnStep::Kind;

// A function of the batch alone, so that sums do not depend on the threads.
std::uint32_t pictures_of_part(std::uint32_t rows) {
  constexpr std::uint32_t least = 4, parts_max = 16;
  return std::max(least, (rows + parts_max - 1) / parts_max);
}

// to[pixel][..] += from[pixel][..], for the channels that both have.
void add_map(PictureShape from_shape, const float* from, PictureShape to_shape, float* to) {
  const KernelTable& k = kernels();
  if (from_shape.channels == to_shape.channels) return k.axpy(static_cast<long>(to_shape.size()), 1, from, to);
  for (std::size_t p = 0; p < to_shape.pixels(); ++p)
    k.axpy(from_shape.channels, 1, from + p * from_shape.channels, to + p * to_shape.channels);
}

// The backward pass: the change of `to` goes to the same channels of `from`.
void add_map_backward(PictureShape from_shape, float* change_from, PictureShape to_shape,
                      const float* change_to, Start start) {
  if (start == Start::zero) std::fill_n(change_from, from_shape.size(), 0.0f);
  for (std::size_t p = 0; p < to_shape.pixels(); ++p)
    kernels().axpy(from_shape.channels, 1, change_to + p * to_shape.channels,
                   change_from + p * from_shape.channels);
}

}  // namespace

Result<std::unique_ptr<Model>> make_cnn(const ModelConfig& config) {
  std::vector<CnnPlan> plans;
  std::vector<std::uint32_t> sizes = config.sizes;
  if (sizes.empty()) sizes.push_back(0);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    Result<CnnPlan> plan = plan_cnn(config, *size);
    if (!plan) return plan.error();
    plans.push_back(std::move(*plan));
  }
  Result<ParamLayout> layout = ParamLayout::create(plans.front().tensors);
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<Cnn>(std::move(*layout), std::move(plans)));
}

Cnn::Cnn(ParamLayout layout, std::vector<CnnPlan> plans) : layout_(std::move(layout)), plans_(std::move(plans)) {
  for (const CnnPlan& plan : plans_) {
    RUMOR_CHECK(layout_.tensors().size() == plan.tensors.size());
    RUMOR_CHECK(plan.maps.back().shape.size() == whole().maps.back().shape.size());
  }
  if (whole().part.is_last()) head_.emplace(layout_, whole().head);
  body_params_ = head_ ? layout_.tensors()[whole().body_tensors].offset : layout_.params();
  ordered_.resize(whole().convolutions.size());
  desks_.resize(1);
}

TensorStart Cnn::start_of(const TensorInfo& tensor) const {
  const bool is_scale = tensor.shape.size() == 1 && tensor.name.ends_with(".weight");
  return is_scale ? TensorStart{TensorStart::Kind::one} : TensorStart::by_inputs(tensor);
}

BorderFloats Cnn::border_floats() const {
  return {whole().part.is_first() ? 0 : whole().maps.front().shape.size(),
          whole().part.is_last() ? 0 : whole().maps.back().shape.size()};
}

std::uint64_t Cnn::multiply_adds_at(std::uint32_t rows, std::uint32_t size) const {
  const auto plan = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const CnnPlan& any) { return any.maps.front().shape.height == size; });
  RUMOR_CHECK(plan != plans_.end());
  return count_work(*plan, rows);
}

std::uint64_t Cnn::count_work(const CnnPlan& plan, std::uint32_t rows) const {
  std::uint64_t picture = layout_.params() - body_params_;
  for (const Convolution& convolution : plan.convolutions)
    picture += std::uint64_t{convolution.input().height} * convolution.input().width * convolution.weights();
  return rows * picture;
}

void Cnn::set_parallel(Parallel* parallel) {
  parallel_ = parallel;
  if (head_) head_->set_parallel(parallel);
  desks_.resize(parallel == nullptr ? 1 : parallel->width());
}

std::size_t Cnn::memory_bytes() const {
  std::size_t bytes = capacity_bytes(maps_, features_, change_features_, part_gradients_);
  if (head_) bytes += head_->memory_bytes();
  for (const ConvolutionWeights& weights : ordered_) bytes += capacity_bytes(weights.forward, weights.backward);
  for (const Desk& desk : desks_) bytes += capacity_bytes(desk.change, desk.border);
  return bytes;
}

// Each desk takes the next part that nobody has, until none is left.
template <class Work>
void Cnn::share_out(std::size_t parts, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&](std::size_t desk) {
    for (std::size_t part = next++; part < parts; part = next++) work(part, desks_[desk]);
  };
  if (desks_.size() == 1) return take(0);
  parallel_->each(desks_.size(), take);
}

// x: [rows][channels][height][width] -> features, the same of the last map.
void Cnn::forward_maps(const float* params, const float* x, std::uint32_t rows, float* features) {
  const PictureShape picture = plan().maps.front().shape, last = plan().maps.back().shape;
  room_in(maps_, rows * plan().floats);
  share_out(plan().steps.size(), [&](std::size_t i, Desk&) {
    const CnnStep& step = plan().steps[i];
    if (step.kind == Kind::convolution)
      plan().convolutions[step.layer].order(params + tensor(step).offset, ordered_[step.layer]);
  });
  const std::uint32_t pictures = pictures_of_part(rows);
  share_out((rows + pictures - 1) / pictures, [&](std::size_t part, Desk& desk) {
    const std::size_t end = std::min<std::size_t>(rows, (part + 1) * pictures);
    for (std::size_t row = part * pictures; row < end; ++row) {
      float* maps = maps_.data() + row * plan().floats;
      const long pixels = static_cast<long>(picture.pixels()), last_pixels = static_cast<long>(last.pixels());
      kernels().transpose(picture.channels, pixels, x + row * picture.size(), pixels, maps, picture.channels);
      for (const CnnStep& step : plan().steps) forward_step(step, params, maps, desk);
      kernels().transpose(last_pixels, last.channels, maps + plan().maps.back().at, last.channels,
                          features + row * last.size(), last_pixels);
    }
  });
}

// With the head. -> features_ and the logits.
void Cnn::forward_whole(const float* params, const float* x, std::uint32_t rows) {
  features_.resize(rows * plan().maps.back().shape.size());
  forward_maps(params, x, rows, features_.data());
  head_->forward(params, features_.data(), rows);
}

void Cnn::forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                  std::span<float> above) {
  const std::span<const float> x = whole().part.is_first() ? batch.x : below;
  choose_plan(batch.rows, x);
  check(params, batch);
  RUMOR_CHECK(above.size() == batch.rows * border_floats().above);
  if (head_) return forward_whole(params.data(), x.data(), batch.rows);
  forward_maps(params.data(), x.data(), batch.rows, above.data());
}

void Cnn::forward_step(const CnnStep& step, const float* params, float* maps, Desk& desk) const {
  const PictureShape from_shape = plan().maps[step.from].shape, to_shape = plan().maps[step.to].shape;
  float *from = maps + plan().maps[step.from].at, *to = maps + plan().maps[step.to].at;
  switch (step.kind) {
    case Kind::convolution: {
      const float* bias = step.has_bias ? params + tensor(step, 1).offset : nullptr;
      return plan().convolutions[step.layer].forward(ordered_[step.layer], bias, from, to, desk.border);
    }
    case Kind::norm:
      return plan().norms[step.layer].forward(params + tensor(step).offset, params + tensor(step, 1).offset,
                                             from, to, maps + plan().norm_saved_at[step.layer]);
    case Kind::relu:
      return kernels().relu(static_cast<long>(to_shape.size()), to);
    case Kind::max_pool:
      return max_pool(from_shape, from, to);
    case Kind::average_pool:
      return average_pool(from_shape, from, to);
    case Kind::add:
      return add_map(from_shape, from, to_shape, to);
    case Kind::stretch:
      return plan().area_means[step.layer].map(from_shape.channels, from, to, desk.border);
  }
}

// All of one picture, from the change of its features down; gradient [body_params_] += ....
void Cnn::backward_picture(const float* params, std::uint32_t row, const float* change_features,
                           float* gradient, Desk& desk) const {
  const CnnPlan::Map& last = plan().maps.back();
  desk.change.resize(plan().floats);
  const long channels = last.shape.channels, pixels = static_cast<long>(last.shape.pixels());
  kernels().transpose(channels, pixels, change_features + row * last.shape.size(), pixels,
                      desk.change.data() + last.at, channels);
  const float* maps = maps_.data() + row * plan().floats;
  for (auto step = plan().steps.rbegin(); step != plan().steps.rend(); ++step)
    backward_step(*step, params, maps, gradient, desk);
}

void Cnn::backward_step(const CnnStep& step, const float* params, const float* maps, float* gradient,
                        Desk& desk) const {
  const CnnPlan::Map &from_map = plan().maps[step.from], &to_map = plan().maps[step.to];
  float *change_from = desk.change.data() + from_map.at, *change_to = desk.change.data() + to_map.at;
  switch (step.kind) {
    case Kind::convolution:
    case Kind::norm:
      return backward_weights(step, params, maps, gradient, desk);
    case Kind::relu:
      return kernels().relu_backward(static_cast<long>(to_map.shape.size()), maps + to_map.at, change_to);
    case Kind::max_pool:
      return max_pool_backward(from_map.shape, maps + from_map.at, change_to, change_from);
    case Kind::average_pool:
      return average_pool_backward(from_map.shape, change_to, change_from);
    case Kind::add:
      return add_map_backward(from_map.shape, change_from, to_map.shape, change_to, step.start);
    case Kind::stretch:
      return plan().area_means[step.layer].map_backward(from_map.shape.channels, change_to, change_from, desk.border);
  }
}

// The steps that have weights.
void Cnn::backward_weights(const CnnStep& step, const float* params, const float* maps, float* gradient,
                           Desk& desk) const {
  const float* from = maps + plan().maps[step.from].at;
  float* change_from = desk.change.data() + plan().maps[step.from].at;
  float* change_to = desk.change.data() + plan().maps[step.to].at;
  float* weight_gradient = gradient + tensor(step).offset;
  float* bias_gradient = step.has_bias ? gradient + tensor(step, 1).offset : nullptr;
  if (step.kind == Kind::norm) {
    const std::size_t size = plan().maps[step.to].shape.size();
    plan().norms[step.layer].backward(params + tensor(step).offset, from,
                                     maps + plan().norm_saved_at[step.layer], change_to, weight_gradient,
                                     bias_gradient);
    std::copy_n(change_to, size, change_from);
    return;
  }
  const Convolution& convolution = plan().convolutions[step.layer];
  convolution.weight_gradient(from, change_to, weight_gradient, bias_gradient, desk.border);
  if (step.from != 0 || !plan().part.is_first())  // nobody asks for the gradient of the picture
    convolution.input_gradient(ordered_[step.layer], change_to, change_from, step.start, desk.border);
}

// gradient = the parts, one after another; convolutions back from the order of their products.
void Cnn::sum_parts(std::size_t parts, float* gradient) {
  constexpr std::uint32_t piece = 4096;
  share_out((body_params_ + piece - 1) / piece, [&](std::size_t i, Desk&) {
    const std::size_t first = i * piece, count = std::min<std::size_t>(piece, body_params_ - first);
    float* sum = part_gradients_.data() + first;
    for (std::size_t part = 1; part < parts; ++part)
      kernels().axpy(static_cast<long>(count), 1, sum + part * body_params_, sum);
    std::copy_n(sum, count, gradient + first);
  });
  share_out(plan().steps.size(), [&](std::size_t i, Desk&) {
    const CnnStep& step = plan().steps[i];
    if (step.kind != Kind::convolution) return;
    const std::uint32_t at = tensor(step).offset;
    plan().convolutions[step.layer].restore(part_gradients_.data() + at, gradient + at);
  });
}

// change_features: [rows] of the last map -> gradient [body_params_] and change_x (null: not wanted),
// overwritten.
void Cnn::backward_maps(const float* params, std::uint32_t rows, const float* change_features,
                        float* gradient, float* change_x) {
  const std::uint32_t pictures = pictures_of_part(rows);
  const std::size_t parts = (rows + pictures - 1) / pictures;
  const PictureShape picture = plan().maps.front().shape;
  const long pixels = static_cast<long>(picture.pixels());
  part_gradients_.resize(parts * body_params_);
  share_out(parts, [&](std::size_t part, Desk& desk) {
    float* sum = part_gradients_.data() + part * body_params_;
    std::fill_n(sum, body_params_, 0.0f);
    const auto first = static_cast<std::uint32_t>(part) * pictures, end = std::min(rows, first + pictures);
    for (std::uint32_t row = first; row < end; ++row) {
      backward_picture(params, row, change_features, sum, desk);
      if (change_x)
        kernels().transpose(pixels, picture.channels, desk.change.data(), picture.channels,
                            change_x + row * picture.size(), pixels);
    }
  });
  sum_parts(parts, gradient);
}

float Cnn::backward(std::span<const float> params, const Batch& batch, std::span<const float>,
                    std::span<const float> above_change, std::span<float> gradient,
                    std::span<float> below_change) {
  check_backward(batch.rows, above_change, gradient, below_change);
  double loss = 0;
  const float* change_features = above_change.data();
  if (head_) {
    loss = head_->softmax(batch.label.data(), true, batch.soft).loss_sum;
    change_features_.resize(features_.size());
    head_->backward(params.data(), features_.data(), gradient.data(), change_features_.data());
    change_features = change_features_.data();
  }
  backward_maps(params.data(), batch.rows, change_features, gradient.data(),
                plan().part.is_first() ? nullptr : below_change.data());
  return static_cast<float>(loss / batch.rows);
}

Evaluation Cnn::evaluate(std::span<const float> params, const Batch& batch) {
  RUMOR_CHECK(whole().part.is_whole());
  choose_plan(batch.rows, batch.x);
  check(params, batch);
  constexpr std::uint32_t piece = 64;
  const std::size_t picture = plan().maps.front().shape.size();
  double loss = 0;
  std::uint32_t right = 0;
  for (std::uint32_t row = 0; row < batch.rows; row += piece) {
    forward_whole(params.data(), batch.x.data() + row * picture, std::min(piece, batch.rows - row));
    const DenseLayers::Outcome outcome = head_->softmax(batch.label.data() + row, false);
    loss += outcome.loss_sum;
    right += outcome.right;
  }
  return {loss / batch.rows, static_cast<double>(right) / batch.rows};
}

void Cnn::predict(std::span<const float> params, const Batch& batch, std::span<float> out) {
  RUMOR_CHECK(whole().part.is_whole());
  choose_plan(batch.rows, batch.x);
  check(params, batch);
  RUMOR_CHECK(out.size() == predictions(batch.rows));
  forward_whole(params.data(), batch.x.data(), batch.rows);
  head_->predict(out.data());
}

void Cnn::predict_exit(std::span<float> out) {
  RUMOR_CHECK(head_ && out.size() == predictions(head_->rows()));
  head_->predict(out.data());
}

void Cnn::choose_plan(std::uint32_t rows, std::span<const float> input) {
  RUMOR_CHECK(rows > 0);
  const auto plan = std::find_if(plans_.begin(), plans_.end(), [&](const CnnPlan& any) {
    return input.size() == rows * any.maps.front().shape.size();
  });
  RUMOR_CHECK(plan != plans_.end());
  at_ = static_cast<std::size_t>(plan - plans_.begin());
}

void Cnn::check(std::span<const float> params, const Batch& batch) const {
  RUMOR_CHECK(params.size() == layout_.params());
  if (!whole().part.is_last()) return;
  RUMOR_CHECK(batch.label.size() == batch.rows);
  RUMOR_CHECK(batch.soft.probability.empty() || batch.soft.probability.size() == predictions(batch.rows));
}

}  // namespace rumor::models
