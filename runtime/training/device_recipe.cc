#include "runtime/training/device_recipe.h"

#include <utility>

namespace rumor {

gpu::Precision precision_of(const RunConfig& config) {
  if (config.precision == "tf32") return gpu::Precision::tf32;
  return config.precision == "bf16" ? gpu::Precision::bf16 : gpu::Precision::fp32;
}

DeviceRecipe::DeviceRecipe(const gpu::Gpu& gpu, const RunConfig& config, BuiltInModel& built, gpu::SplitModel& model,
                           gpu::DeviceOptimizer optimizer)
    : gpu_(&gpu),
      built_(&built),
      model_(&model),
      optimizer_(std::move(optimizer)),
      local_steps_(built.batches > 1 || config.follows_delay()) {
  if (config.optimizer.clip > 0) clip_.emplace(gpu, config.optimizer.clip);
}

// Makes room for the steps that the run file asks for: a peer that has too little memory says so at once.
Result<DeviceRecipe> DeviceRecipe::create(const gpu::Gpu& gpu, const RunConfig& config, BuiltInModel& built,
                                          gpu::SplitModel& model) {
  auto optimizer = gpu::DeviceOptimizer::create(gpu, *built.optimizer, precision_of(config));
  if (!optimizer) return optimizer.error();
  DeviceRecipe made(gpu, config, built, model, std::move(optimizer).value());
  if (made.local_steps_ || !made.optimizer_.has_rule())
    if (auto room = made.make_room(made.local_steps_); !room) return room.error();
  return made;
}

Result<void> DeviceRecipe::make_room(bool several) {
  const std::uint32_t params = built_->layout().params();
  if (auto room = gradient_.make_room(*gpu_, params, "gradient of a mini-batch"); !room || !several) return room;
  if (built_->optimizer->bears_full_rate())
    if (auto room = start_.make_room(*gpu_, params, "weights and residual"); !room) return room;
  return seen_.make_room(*gpu_, params, "weights of a mini-batch");
}

Result<Recipe::Made> DeviceRecipe::make(const StepPlan& plan, const gpu::DeviceArray<float>& weights,
                                        gpu::DeviceCompressor& compressor, const gpu::DeviceArray<float>& change) {
  built_->optimizer->scale_adam_share(plan.adam_factor);
  const std::uint32_t batches = built_->batches_of(plan.batches);
  if (batches == 1 && optimizer_.has_rule()) {
    const Result<double> loss = find_gradient(plan, weights, change);
    if (!loss) return loss.error();
    return Recipe::Made{*loss, optimizer_.begin_step(plan.rate, weights)};
  }
  const bool several = local_steps_ || batches > 1;
  if (auto room = make_room(several); !room) return room.error();
  gpu_->table().fill(gpu_->device(), change.data(), 0, built_->layout().params() * sizeof(float));
  const Result<double> loss = several ? take_several(plan, batches, weights, compressor, change)
                                      : take_one(plan, weights, change);
  if (!loss) return loss.error();
  return Recipe::Made{*loss, {}};
}

Result<double> DeviceRecipe::find_gradient(const StepPlan& plan, const gpu::DeviceArray<float>& at,
                                           const gpu::DeviceArray<float>& gradient) {
  const Result<float> loss = model_->loss_and_gradient(at, built_->next_batch(plan), gradient);
  if (!loss) return loss.error();
  if (clip_)
    if (auto clipped = clip_->cut(gradient, built_->layout().params()); !clipped) return clipped.error();
  return *loss;
}

// One mini-batch: its loss; the optimizer's step is added to the change.
Result<double> DeviceRecipe::take_one(const StepPlan& plan, const gpu::DeviceArray<float>& at,
                                      const gpu::DeviceArray<float>& change) {
  const Result<double> loss = find_gradient(plan, at, gradient_);
  if (!loss) return loss.error();
  if (auto added = optimizer_.add_step(gradient_, plan.rate, at, change); !added) return added.error();
  return *loss;
}

// The mean loss. Every mini-batch looks at the same array, so that the model's work is recorded once. What it looks at
// is that of runtime/training/local_steps.h.
Result<double> DeviceRecipe::take_several(const StepPlan& plan, std::uint32_t batches,
                                          const gpu::DeviceArray<float>& weights, gpu::DeviceCompressor& compressor,
                                          const gpu::DeviceArray<float>& change) {
  const bool ahead = built_->optimizer->bears_full_rate();
  const auto add = [&](const gpu::DeviceArray<float>& from, float factor, const gpu::DeviceArray<float>& more,
                       const gpu::DeviceArray<float>& to) {
    gpu_->table().optimizers.add_share(gpu_->device(), built_->layout().params(), from.data(), factor, more.data(),
                                       to.data());
  };
  if (ahead) add(weights, 1, compressor.residual_there(), start_);
  double sum = 0;
  Result<void> done;
  for (std::uint32_t batch = 0; done && batch < batches; ++batch) {
    add(ahead ? start_ : weights, ahead ? static_cast<float>(plan.peers) : 1, change, seen_);
    if (ahead || batch > 0) done = model_->follow(seen_);
    if (!done) break;
    const Result<double> loss = take_one(plan, seen_, change);
    if (!loss) done = loss.error();
    if (loss) sum += *loss;
  }
  if (auto back = model_->follow(weights); done && !back) done = back;
  if (!done) return done.error();
  return sum / batches;
}

void DeviceRecipe::add_memory(MemoryUse& use) const {
  use.view += start_.bytes() + seen_.bytes();
  use.gradient += gradient_.bytes();
  use.optimizer += optimizer_.memory_bytes();
  use.entries += clip_ ? clip_->memory_bytes() : 0;
}

}  // namespace rumor
