#include "gpu/models/cnn.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::gpu {

namespace {

using Kind = models::CnnStep::Kind;

Matrix pixels_by_channels(models::PictureShape shape) {
  return {static_cast<std::uint32_t>(shape.pixels()), shape.channels};
}

}  // namespace

Result<DeviceCnn> DeviceCnn::create(const Gpu& gpu, const models::ModelConfig& config, Precision precision,
                                    std::size_t seen_max) {
  Result<models::CnnPlan> plan = models::plan_cnn(config);
  if (!plan) return plan.error();
  Result<ParamLayout> layout = ParamLayout::create(plan->tensors);
  if (!layout) return layout.error();
  return DeviceCnn(gpu, std::move(layout).value(), std::move(plan).value(), config.groups, precision, seen_max);
}

DeviceCnn::DeviceCnn(const Gpu& gpu, ParamLayout layout, models::CnnPlan plan, std::uint32_t groups,
                     Precision precision, std::size_t seen_max)
    : gpu_(&gpu),
      layout_(std::move(layout)),
      plan_(std::move(plan)),
      groups_(groups),
      products_(gpu, precision),
      head_(gpu, layout_, plan_.head, precision),
      seen_max_(seen_max),
      maps_(plan_.maps.size()),
      norms_(plan_.norms.size()) {}

Pictures DeviceCnn::pictures_of(std::uint32_t map) const {
  const models::PictureShape shape = plan_.maps[map].shape;
  return {rows_, shape.height, shape.width, shape.channels};
}

Result<void> DeviceCnn::make_room(std::uint32_t rows) {
  if (rows <= rows_max_) return {};
  PlacedArrays arrays;
  for (std::size_t m = 0; m < maps_.size(); ++m)
    for (float** one : {&maps_[m].values, &maps_[m].change}) arrays.add(*one, rows * plan_.maps[m].shape.size());
  for (Norm& norm : norms_)
    for (float** one : {&norm.mean, &norm.scale}) arrays.add(*one, std::size_t{rows} * groups_);
  std::size_t seen = 0, scratch = 0;
  for (const models::CnnStep& step : plan_.steps) {
    const models::PictureShape from = plan_.maps[step.from].shape, to = plan_.maps[step.to].shape;
    if (step.kind == Kind::convolution) {
      seen = std::max(seen, at_once(from, rows) * from.size() * window_places);
      scratch = std::max(scratch, chunks_of(static_cast<std::uint32_t>(rows * to.pixels())) * to.channels);
    }
    if (step.kind == Kind::norm)
      scratch = std::max(scratch, group_norm_scratch({rows, to.height, to.width, to.channels}));
  }
  const std::size_t features = rows * plan_.maps.back().shape.size();
  for (Result<void> room : {x_.make_room(*gpu_, rows * plan_.maps.front().shape.size(), "a batch"),
                            features_.make_room(*gpu_, features, "activations"),
                            features_change_.make_room(*gpu_, features, "activations"),
                            seen_.make_room(*gpu_, seen, "activations"),
                            scratch_.make_room(*gpu_, scratch, "activations")})
    if (!room) return room;
  // This comes last: arrays move only once nothing can fail any more.
  if (auto room = arrays.make_room(*gpu_, memory_, "activations"); !room) return room;
  rows_max_ = rows;
  return {};
}

std::uint32_t DeviceCnn::at_once(models::PictureShape from, std::uint32_t rows) const {
  const std::size_t most = std::max<std::size_t>(seen_max_ / (from.size() * window_places), 1);
  return static_cast<std::uint32_t>(std::min<std::size_t>(rows, most));
}

template <class Work>
void DeviceCnn::each_piece(Pictures from, const Work& work) const {
  const std::uint32_t pictures = at_once({from.height, from.width, from.channels}, from.count);
  for (std::uint32_t first = 0; first < from.count; first += pictures) {
    Pictures piece = from;
    piece.count = std::min(pictures, from.count - first);
    work(piece, first);
  }
}

// ---- forward ----

// y[pixels][out] = seen[pixels][in, 9] * weight[out][in, 9]^T + bias
void DeviceCnn::convolve(const models::CnnStep& step, const float* params) {
  const Pictures from = pictures_of(step.from), to = pictures_of(step.to);
  each_piece(from, [&](Pictures piece, std::uint32_t first) {
    gpu_->table().pictures.windows(gpu_->device(), piece, maps_[step.from].values + first * from.size(), seen_.data());
    const auto pixels = static_cast<std::uint32_t>(piece.count * to.pixels());
    MatmulArgs args = product(pixels, to.channels, from.channels * window_places, seen_.data(),
                              params + offset_of(step), maps_[step.to].values + first * to.size());
    args.b_turned = true;
    if (step.has_bias) {
      args.bias = params + offset_of(step, 1);
      args.epilogue = Epilogue::bias;
    }
    products_.make(args);
  });
}

void DeviceCnn::norm(const models::CnnStep& step, const float* params) {
  const Norm& keeps = norms_[step.layer];
  const float *const gain = params + offset_of(step), *const bias = params + offset_of(step, 1);
  const GroupNormArgs args{pictures_of(step.to),   groups_,    maps_[step.from].values, gain,           bias,
                           maps_[step.to].values, keeps.mean, keeps.scale,             scratch_.data()};
  gpu_->table().pictures.group_norm(gpu_->device(), &args);
}

void DeviceCnn::forward_step(const models::CnnStep& step, const float* params) {
  const PictureTable& table = gpu_->table().pictures;
  const Pictures from = pictures_of(step.from), to = pictures_of(step.to);
  const float* const x = maps_[step.from].values;
  float* const y = maps_[step.to].values;
  switch (step.kind) {
    case Kind::convolution:
      return convolve(step, params);
    case Kind::norm:
      return norm(step, params);
    case Kind::relu:
      return table.relu(gpu_->device(), to.count * to.size(), y);
    case Kind::max_pool:
      return table.max_pool(gpu_->device(), from, x, y);
    case Kind::average_pool:
      return table.average_pool(gpu_->device(), from, x, y);
    case Kind::add:
      return table.add_channels(gpu_->device(), to.count * to.pixels(), from.channels, to.channels, x, y);
    case Kind::stretch:
      RUMOR_CHECK(false);  // not with whole pictures
  }
}

// x: [rows][channels][height][width]
Result<void> DeviceCnn::send_pictures(std::span<const float> x, std::uint32_t rows) {
  RUMOR_CHECK(rows > 0);
  RUMOR_CHECK(x.size() == rows * plan_.maps.front().shape.size());
  for (Result<void> room : {make_room(rows), head_.make_room(rows)})
    if (!room) return room;
  rows_ = rows;
  x_.write(x.data(), x.size());
  return {};
}

void DeviceCnn::forward(const float* params) {
  const models::PictureShape picture = plan_.maps.front().shape, last = plan_.maps.back().shape;
  const PictureTable& table = gpu_->table().pictures;
  const Matrix planes = {picture.channels, static_cast<std::uint32_t>(picture.pixels())};
  table.turn(gpu_->device(), rows_, planes, x_.data(), maps_.front().values);
  for (const models::CnnStep& step : plan_.steps) forward_step(step, params);
  table.turn(gpu_->device(), rows_, pixels_by_channels(last), maps_.back().values, features_.data());
  head_.forward(params, features_.data(), rows_);
}

// ---- backward ----

void DeviceCnn::convolve_back(const models::CnnStep& step, const float* params, float* gradient) {
  const PictureTable& table = gpu_->table().pictures;
  const Pictures from = pictures_of(step.from), to = pictures_of(step.to);
  const float* const change = maps_[step.to].change;
  const std::uint32_t depth = from.channels * window_places;
  if (step.has_bias)
    gpu_->table().model.column_sums(gpu_->device(),
                                    {static_cast<std::uint32_t>(to.count * to.pixels()), to.channels}, change,
                                    scratch_.data(), gradient + offset_of(step, 1));
  each_piece(from, [&](Pictures piece, std::uint32_t first) {
    const auto pixels = static_cast<std::uint32_t>(piece.count * to.pixels());
    const float* const own_change = change + first * to.size();
    // d weight[out][in, 9] = change[pixels][out]^T * seen[pixels][in, 9]
    table.windows(gpu_->device(), piece, maps_[step.from].values + first * from.size(), seen_.data());
    MatmulArgs of_weight =
        product(to.channels, depth, pixels, own_change, seen_.data(), gradient + offset_of(step));
    of_weight.a_turned = true;
    of_weight.add = first > 0;
    products_.make(of_weight);
    if (step.from == 0) return;  // the gradient of the picture is not needed
    // d seen[pixels][in, 9] = change[pixels][out] * weight[out][in, 9]
    products_.make(product(pixels, depth, to.channels, own_change, params + offset_of(step), seen_.data()));
    table.windows_backward(gpu_->device(), piece, seen_.data(), step.start == models::Start::output,
                           maps_[step.from].change + first * from.size());
  });
}

void DeviceCnn::norm_back(const models::CnnStep& step, const float* params, float* gradient) {
  const Norm& kept = norms_[step.layer];
  const GroupNormChange args{pictures_of(step.to),
                             groups_,
                             maps_[step.from].values,
                             params + offset_of(step),
                             kept.mean,
                             kept.scale,
                             maps_[step.to].change,
                             maps_[step.from].change,
                             gradient + offset_of(step),
                             gradient + offset_of(step, 1),
                             scratch_.data()};
  gpu_->table().pictures.group_norm_backward(gpu_->device(), &args);
}

void DeviceCnn::backward_step(const models::CnnStep& step, const float* params, float* gradient) {
  const GpuTable& table = gpu_->table();
  const Pictures from = pictures_of(step.from), to = pictures_of(step.to);
  const Map &below = maps_[step.from], &above = maps_[step.to];
  switch (step.kind) {
    case Kind::convolution:
      return convolve_back(step, params, gradient);
    case Kind::norm:
      return norm_back(step, params, gradient);
    case Kind::relu:
      return table.model.relu_backward(gpu_->device(), to.count * to.size(), above.values, above.change);
    case Kind::max_pool:
      return table.pictures.max_pool_backward(gpu_->device(), from, below.values, above.change, below.change);
    case Kind::average_pool:
      return table.pictures.average_pool_backward(gpu_->device(), from, above.change, below.change);
    case Kind::add:
      return table.pictures.add_channels_backward(gpu_->device(), to.count * to.pixels(), from.channels, to.channels,
                                                  above.change, step.start == models::Start::output, below.change);
    case Kind::stretch:
      RUMOR_CHECK(false);
  }
}

// ---- whole passes ----

Result<void> DeviceCnn::send(const models::Batch& batch, std::uint32_t all_rows) {
  RUMOR_CHECK(batch.label.size() == batch.rows);
  if (!batch.soft.probability.empty()) return no_soft_targets();
  if (auto sent = send_pictures(batch.x, batch.rows); !sent) return sent;
  head_.send(batch.label, all_rows);
  return {};
}

Result<void> DeviceCnn::compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) {
  RUMOR_CHECK(params.size() >= layout_.params() && gradient.size() >= layout_.params());
  forward(params.data());
  head_.compare();
  head_.backward(params.data(), gradient.data(), features_change_.data());
  const models::PictureShape last = plan_.maps.back().shape;
  const Matrix planes = {last.channels, static_cast<std::uint32_t>(last.pixels())};
  gpu_->table().pictures.turn(gpu_->device(), rows_, planes, features_change_.data(), maps_.back().change);
  for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step)
    backward_step(*step, params.data(), gradient.data());
  const Result<void> of_head = head_.outcome(), made = products_.outcome();
  return made ? of_head : made;
}

Result<models::Evaluation> DeviceCnn::evaluate(const DeviceArray<float>& params, const models::Batch& batch) {
  RUMOR_CHECK(params.size() >= layout_.params());
  RUMOR_CHECK(batch.rows > 0 && batch.label.size() == batch.rows);
  const std::size_t picture = plan_.maps.front().shape.size();
  constexpr std::uint32_t piece = 64;
  Tally tally;
  for (std::uint32_t first = 0; first < batch.rows; first += piece) {
    const std::uint32_t rows = std::min(piece, batch.rows - first);
    if (auto sent = send_pictures(batch.x.subspan(first * picture, rows * picture), rows); !sent) return sent.error();
    forward(params.data());
    const Result<std::vector<float>> logits = head_.outputs();
    if (auto made = products_.outcome(); !made) return made.error();
    if (!logits) return logits.error();
    tally.add(*logits, batch.label.subspan(first, rows));
  }
  return tally.evaluation();
}

std::size_t DeviceCnn::memory_bytes() const {
  return device_bytes(memory_, x_, features_, features_change_, seen_, scratch_) + head_.memory_bytes();
}

}  // namespace rumor::gpu
