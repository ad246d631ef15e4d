#include "runtime/device_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/budget.h"
#include "runtime/base/limits.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"
#include "runtime/model_trainer.h"
#include "runtime/replica.h"

namespace rumor {

namespace {

// What a GPU does not do yet.
Result<void> check_possible(const RunConfig& config) {
  const auto not_yet = [](const std::string& what) {
    return Error{Errc::usage, what + " is not possible on a GPU yet; use --device cpu"};
  };
  if (config.model.family != "mlp") return not_yet(str("model.family = \"", config.model.family, "\""));
  if (config.workers() > 0) return not_yet("hogwild.workers");
  if (config.optimizer.clip > 0) return not_yet("optimizer.clip");
  if (config.optimizer.kind == "adaptive_revision") return not_yet("optimizer.kind = \"adaptive_revision\"");
  if (config.has_byte_budget()) return not_yet("a budget in bytes");
  return {};
}

}  // namespace

DeviceTrainer::DeviceTrainer(std::unique_ptr<gpu::Gpu> gpu, const RunConfig& config,
                             std::shared_ptr<const models::DataSet> data)
    : grid_bits_(config.grid_bits),
      batch_(config.batch),
      batches_(config.batches()),
      seed_(config.seed),
      data_(std::move(data)),
      gpu_(std::move(gpu)) {}

Result<std::unique_ptr<DeviceTrainer>> DeviceTrainer::create(std::unique_ptr<gpu::Gpu> gpu, const RunConfig& config,
                                                             std::shared_ptr<const models::DataSet> data,
                                                             models::Shard shard, std::uint64_t sampling_seed) {
  if (auto possible = check_possible(config); !possible) return possible.error();
  shard.seed = config.seed;  // one split for the whole run: parts must not overlap
  shard.skew = config.data.skew;
  if (auto exists = models::check_shard(*data, shard); !exists) return exists.error();
  models::ModelConfig model_config = config.model;
  data->describe(model_config);
  std::unique_ptr<DeviceTrainer> trainer(new DeviceTrainer(std::move(gpu), config, data));
  auto model = models::make_model(model_config);
  if (!model) return model.error();
  trainer->model_ = std::move(model).value();
  auto optimizer = models::make_optimizer(config.optimizer, trainer->layout().params());
  if (!optimizer) return optimizer.error();
  trainer->optimizer_ = std::move(optimizer).value();
  auto mlp = gpu::DeviceMlp::create(*trainer->gpu_, model_config, gpu::Precision::fp32);
  if (!mlp) return mlp.error();
  trainer->mlp_.emplace(std::move(mlp).value());
  trainer->sampler_.emplace(data, shard, config.batch * config.batches(), sampling_seed);
  if (auto made = trainer->make_arrays(config); !made) return made.error();
  return trainer;
}

Result<void> DeviceTrainer::make_arrays(const RunConfig& config) {
  const std::uint32_t params = layout().params();
  auto compressor = gpu::DeviceCompressor::create(*gpu_, layout(),
                                                  {.density = config.density_for(1),
                                                   .grid_bits = config.grid_bits,
                                                   .emit = config.emit,
                                                   .scope = config.scope});
  if (!compressor) return compressor.error();
  compressor_.emplace(std::move(compressor).value());
  codec_.emplace(*gpu_, layout());
  view_.assign(params, 0.0f);
  residual_.assign(params, 0.0f);
  for (Result<void> room :
       {weights_.make_room(*gpu_, params, "weights"), gradient_.make_room(*gpu_, params, "gradient")})
    if (!room) return room;
  // A step that moves nothing tells where the moments lie.
  const Bytes before = optimizer_->save();
  const StepRule rule = optimizer_->begin_step(0, view_);
  if (auto loaded = optimizer_->load(before); !loaded) return loaded;
  for (float* here : {rule.first, rule.second}) {
    Moment moment{here, {}};
    if (here != nullptr) {
      if (auto room = moment.there.make_room(*gpu_, params, "moments of the optimizer"); !room) return room;
      moment.there.write(here, params);
    }
    moments_.push_back(std::move(moment));
  }
  return {};
}

LargeVector<std::int32_t> DeviceTrainer::initial_weights() const {
  return models::initial_weights(*model_, seed_, grid_bits_);
}

compress::FloatView DeviceTrainer::view() { return {view_, std::ldexp(1.0f, -grid_bits_)}; }

void DeviceTrainer::remember(const compress::SharedUpdate& update) {
  if (all_changed_) return;
  changed_entries_ += update->index.size();
  changed_.push_back(update);
  // From here on all of it is less to send.
  if (2 * changed_entries_ < layout().params()) return;
  all_changed_ = true;
  changed_.clear();
}

void DeviceTrainer::follow(Replica& replica) {
  for (const compress::SharedUpdate& update : replica.recent()) remember(update);
  if (replica.refresh(view(), parallel())) return;
  ModelTrainer::to_floats(replica.weights(), grid_bits_, view_);
  all_changed_ = true;
  changed_.clear();
}

void DeviceTrainer::shown(std::span<const compress::SharedUpdate> where) {
  for (const compress::SharedUpdate& update : where) remember(update);
}

Result<void> DeviceTrainer::put_places() {
  std::vector<std::uint32_t> place;
  for (const compress::SharedUpdate& update : changed_)
    place.insert(place.end(), update->index.begin(), update->index.end());
  std::vector<float> value(place.size());
  std::transform(place.begin(), place.end(), value.begin(), [&](std::uint32_t i) { return view_[i]; });
  for (Result<void> room :
       {place_.make_room(*gpu_, place.size(), "updates"), value_.make_room(*gpu_, value.size(), "updates")})
    if (!room) return room;
  place_.write(place.data(), place.size());
  value_.write(value.data(), value.size());
  gpu_->table().put(gpu_->device(), place_.data(), value_.data(), static_cast<std::uint32_t>(place.size()),
                    weights_.data());
  return {};
}

Result<void> DeviceTrainer::send_view() {
  if (all_changed_)
    weights_.write(view_.data(), view_.size());
  else if (auto put = put_places(); !put)
    return put;
  all_changed_ = false;
  changed_.clear();
  changed_entries_ = 0;
  return {};
}

StepResult DeviceTrainer::step(const StepPlan& plan) {
  StepResult result;
  if (auto computed = compute(plan, result); !computed) {
    result.failure = computed.error().text;
    return result;
  }
  result.period = plan.period;
  result.samples = batch_ * batches_;
  result.held = plan.hold;
  return result;
}

Result<void> DeviceTrainer::compute(const StepPlan& plan, StepResult& result) {
  compressor_->set_density(plan.density);
  if (auto sent = send_view(); !sent) return sent;
  const Result<float> loss = mlp_->loss_and_gradient(weights_, sampler_->next(), gradient_);
  if (!loss) return loss.error();
  result.loss = *loss;
  StepRule rule = optimizer_->begin_step(plan.rate, view_);
  rule.first = moments_[0].there.data();
  rule.second = moments_[1].there.data();
  rule.weights = weights_.data();
  if (auto absorbed = compressor_->absorb_step(rule, gradient_, update_); !absorbed) return absorbed;
  if (plan.hold)
    compressor_->withdraw(update_);
  else if (auto encoded = encode(result); !encoded)
    return encoded;
  if (!plan.survey) return {};
  auto stats = compressor_->stats(update_);
  if (!stats) return stats.error();
  result.compression = std::move(stats).value();
  return {};
}

// Never more than an update may have, whatever the density: what is cut off waits in the residual.
Result<void> DeviceTrainer::encode(StepResult& result) {
  for (;;) {
    auto payload = codec_->encode(update_);
    if (!payload) return payload.error();
    result.payload = std::move(payload).value();
    if (result.payload.size() <= limits::payload_bytes_max || update_.count <= 1) break;
    const std::uint32_t fitting =
        compress::fitting_entries(update_.count, limits::payload_bytes_max, result.payload.size());
    if (auto cut = compressor_->shrink(fitting, update_); !cut) return cut;
  }
  auto update = compress::decode(layout(), result.payload);
  if (!update) return update.error();
  result.update = std::move(update).value();
  return {};
}

models::Evaluation DeviceTrainer::evaluate(std::span<const float> weights, std::uint32_t rows_max) {
  gradient_.write(weights.data(), weights.size());
  return evaluate_on_test(*data_, rows_max, [&](const models::Batch& batch) {
    const auto part = mlp_->evaluate(gradient_, batch);
    return part ? *part : models::Evaluation{std::nan(""), {}};  // the next step says what failed
  });
}

std::span<const float> DeviceTrainer::residual() const {
  if (auto copied = compressor_->residual(); copied) residual_ = std::move(copied).value();
  return residual_;
}

Bytes DeviceTrainer::optimizer_state() const {
  for (const Moment& moment : moments_)
    if (moment.here != nullptr && !moment.there.read(moment.here, layout().params())) break;
  return optimizer_->save();
}

Result<void> DeviceTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  if (residual.size() != view_.size()) return Error{Errc::corrupt, "its residual is of another size"};
  if (auto loaded = optimizer_->load(optimizer_state); !loaded) return loaded;
  for (const Moment& moment : moments_)
    if (moment.here != nullptr) moment.there.write(moment.here, layout().params());
  compressor_->restore_residual(residual);
  return {};
}

compress::CompressorStats DeviceTrainer::compression() const {
  auto stats = compressor_->stats(update_);
  return stats ? std::move(stats).value() : compress::CompressorStats{};
}

MemoryUse DeviceTrainer::memory() const {
  constexpr std::size_t one = sizeof(float);
  MemoryUse use;
  use.view = capacity_bytes(view_) + one * weights_.size();
  use.gradient = one * gradient_.size();
  use.residual = one * layout().params() + capacity_bytes(residual_);
  use.optimizer = optimizer_->memory_bytes();
  for (const Moment& moment : moments_) use.optimizer += one * moment.there.size();
  use.entries = one * (place_.size() + value_.size()) + update_.index.size() * 5;
  for (const compress::SharedUpdate& update : changed_) use.entries += compress::part_bytes(update);
  return use;
}

}  // namespace rumor
