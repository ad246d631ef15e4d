#include "runtime/training/device_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/evaluate/evaluation.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

// Refuses keys that a GPU trainer does not implement yet.
Result<void> check_possible(const RunConfig& config) {
  const auto not_yet = [](const std::string& what) {
    return Error{Errc::usage, what + " is not possible on a GPU yet; use --device cpu"};
  };
  if (config.model.adapter.is_on()) return not_yet(str("model.adapter = \"", config.model.adapter.kind, "\""));
  if (config.resolution.is_on()) return not_yet("data.resolution");
  if (config.hogwild > 0) return not_yet(str("optimizer.hogwild = ", config.hogwild));
  if (config.optimizer.kind == "adaptive_revision") return not_yet("optimizer.kind = \"adaptive_revision\"");
  if (config.bytes_per_update > 0) return not_yet(str("compress.bytes_per_update = ", config.bytes_per_update));
  if (config.bytes_per_second > 0) return not_yet(str("compress.bytes_per_second = ", config.bytes_per_second));
  return {};
}

// The entries of the last update, on the GPU. encode() sends none that the guard finds with the weights `view`.
class EntriesThere final : public compress::ChosenEntries {
 public:
  EntriesThere(gpu::DeviceCompressor& compressor, gpu::DeviceCodec& codec, gpu::DeviceRangeGuard& guard,
               const gpu::DeviceArray<float>& view, gpu::DeviceUpdate& update)
      : compressor_(compressor), codec_(codec), guard_(guard), view_(view), update_(update) {}
  std::uint64_t count() const override { return update_.count; }
  Result<Bytes> encode() override {
    if (auto kept = keep_in_range(); !kept) return kept.error();
    return codec_.encode(update_);
  }
  Result<void> shrink(std::uint32_t entries) override { return compressor_.shrink(entries, update_); }
  const std::vector<std::uint32_t>& left_out() const override { return left_out_; }

 private:
  Result<void> keep_in_range();

  gpu::DeviceCompressor& compressor_;
  gpu::DeviceCodec& codec_;
  gpu::DeviceRangeGuard& guard_;
  const gpu::DeviceArray<float>& view_;
  gpu::DeviceUpdate& update_;
  std::vector<std::uint32_t> left_out_;
};

// As compress::CompressorEntries: those that take the place of what is left out may move a weight too far as well.
Result<void> EntriesThere::keep_in_range() {
  while (true) {
    const auto beyond = guard_.beyond(view_, update_);
    if (!beyond) return beyond.error();
    if (beyond->empty()) return {};
    left_out_.insert(left_out_.end(), beyond->begin(), beyond->end());
    if (auto left = compressor_.leave_out(*beyond, update_); !left) return left;
  }
}

}  // namespace

DeviceTrainer::DeviceTrainer(std::unique_ptr<gpu::GpuGroup> gpus, BuiltInModel built)
    : built_(std::move(built)), residual_(layout().params(), 0.0f), gpus_(std::move(gpus)), gpu_(&gpus_->first()) {}

Result<std::unique_ptr<DeviceTrainer>> DeviceTrainer::create(std::unique_ptr<gpu::GpuGroup> gpus,
                                                             const RunConfig& config,
                                                             std::shared_ptr<const models::DataSet> data,
                                                             models::Shard shard, std::uint64_t sampling_seed) {
  if (auto possible = check_possible(config); !possible) return possible.error();
  auto built = BuiltInModel::create(config, std::move(data), shard, sampling_seed);
  if (!built) return built.error();
  std::unique_ptr<DeviceTrainer> trainer(new DeviceTrainer(std::move(gpus), std::move(built).value()));
  if (auto prepared = trainer->prepare(config); !prepared) return prepared.error();
  return trainer;
}

Result<void> DeviceTrainer::prepare(const RunConfig& config) {
  auto model = gpu::SplitModel::create(*gpus_, built_.config, precision_of(config));
  if (!model) return model.error();
  model_.emplace(std::move(model).value());
  auto compressor = gpu::DeviceCompressor::create(*gpu_, layout(), built_.compressor);
  if (!compressor) return compressor.error();
  compressor_.emplace(std::move(compressor).value());
  codec_.emplace(*gpu_, layout());
  guard_.emplace(*gpu_, layout(), built_.grid_bits);
  auto view = DeviceView::create(*gpu_, *model_, *codec_, layout(), built_.grid_bits);
  if (!view) return view.error();
  view_.emplace(std::move(view).value());
  auto recipe = DeviceRecipe::create(*gpu_, config, built_, *model_);
  if (!recipe) return recipe.error();
  recipe_.emplace(std::move(recipe).value());
  return change_.make_room(*gpu_, layout().params(), "gradient");
}

StepResult DeviceTrainer::step(const StepPlan& plan) {
  StepResult result;
  if (failure_) {
    result.failure = std::exchange(failure_, std::nullopt)->text;
    return result;
  }
  if (auto computed = compute(plan, result); !computed) {
    result.failure = computed.error().text;
    return result;
  }
  result.period = plan.period;
  return result;
}

Result<void> DeviceTrainer::compute(const StepPlan& plan, StepResult& result) {
  compressor_->set_density(plan.density);
  if (plan.drop_residual) compressor_->clear_residual();
  compressor_->set_decay(plan.flush ? 0 : built_.compressor.residual_decay);  // what waits in a flush is being sent
  made_.clear();
  if (auto shown = view_->told(); !shown) return shown;
  if (plan.survey)
    if (auto equal = view_->verify(); !equal) return equal;
  if (auto absorbed = plan.flush ? absorb_nothing(result) : absorb_step(plan, result); !absorbed) return absorbed;
  if (result.held)
    compressor_->withdraw(update_);
  else if (auto encoded = encode(result); !encoded)
    return encoded;
  if (!plan.survey) return {};
  auto stats = compressor_->stats(update_);
  if (!stats) return stats.error();
  result.compression = std::move(stats).value();
  return {};
}

Result<void> DeviceTrainer::absorb_step(const StepPlan& plan, StepResult& result) {
  const Result<Recipe::Made> made = recipe_->make(plan, view_->floats(), *compressor_, change_);
  if (!made) return made.error();
  result.loss = made->loss;
  result.samples = built_.samples_of(plan);
  result.held = plan.hold;
  return made->rule ? compressor_->absorb_step(*made->rule, change_, update_) : compressor_->absorb(change_, update_);
}

Result<void> DeviceTrainer::absorb_nothing(StepResult& result) {
  gpu_->table().fill(gpu_->device(), change_.data(), 0, change_.bytes());
  auto absorbed = compressor_->absorb(change_, update_);
  result.held = update_.count == 0;
  return absorbed;
}

Result<void> DeviceTrainer::encode(StepResult& result) {
  EntriesThere chosen(*compressor_, *codec_, *guard_, view_->floats(), update_);
  if (auto encoded = encoder_.encode(chosen, result); !encoded) return encoded;
  auto update = compress::decode(layout(), result.payload);
  if (!update) return update.error();
  made_ = result.payload;
  result.update = std::move(update).value();
  return {};
}

models::Evaluation DeviceTrainer::evaluate(std::span<const float> weights, std::uint32_t rows_max) {
  const models::Evaluation failed{std::nan(""), {}};
  change_.write(weights.data(), weights.size());
  if (weights.empty()) {
    auto equal = view_->told();
    if (equal) equal = view_->verify();
    if (!equal) failure_ = equal.error();
    if (!equal) return failed;
  }
  const gpu::DeviceArray<float>& evaluated = weights.empty() ? view_->floats() : change_;
  return models::evaluate_on_test(*built_.data, rows_max, [&](const models::Batch& batch) {
    auto part = model_->evaluate(evaluated, batch);
    if (part) return *part;
    failure_ = part.error();
    return failed;
  });
}

Result<std::vector<float>> DeviceTrainer::device_view() const {
  std::vector<float> all(layout().params());
  if (auto read = view_->floats().read(all.data(), all.size()); !read) return read.error();
  return all;
}

std::span<const float> DeviceTrainer::residual() const {
  if (const auto copied = compressor_->residual(); copied) std::copy(copied->begin(), copied->end(), residual_.begin());
  return residual_;
}

Bytes DeviceTrainer::optimizer_state() const {
  return recipe_->optimizer().save();
}

Result<void> DeviceTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  if (residual.size() != layout().params()) return Error{Errc::corrupt, "its residual is of another size"};
  if (auto loaded = recipe_->optimizer().load(optimizer_state); !loaded) return loaded;
  compressor_->restore_residual(residual);
  return {};
}

compress::CompressorStats DeviceTrainer::compression() const {
  auto stats = compressor_->stats(update_);
  return stats ? std::move(stats).value() : compress::CompressorStats{};
}

MemoryUse DeviceTrainer::memory() const {
  MemoryUse use;
  use.weights = view_->weight_bytes();
  use.view = view_->float_bytes() + model_->copy_bytes();
  use.gradient = change_.bytes() + model_->gradient_bytes();
  use.residual = capacity_bytes(residual_) + compressor_->residual_bytes();
  use.optimizer = built_.optimizer->memory_bytes();
  use.entries = view_->entry_bytes() + capacity_bytes(made_) + model_->entry_bytes() + update_.memory_bytes() +
                compressor_->entry_bytes() + codec_->memory_bytes() + guard_->memory_bytes();
  use.activations = model_->activation_bytes();
  recipe_->add_memory(use);
  return use;
}

}  // namespace rumor
