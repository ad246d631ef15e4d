#include "runtime/training/recipe.h"

#include <utility>
#include <vector>

#include "models/optimizers/hogwild.h"
#include "runtime/base/text.h"
#include "runtime/training/local_steps.h"

namespace rumor {

namespace {

class OneBatch final : public Recipe {
 public:
  OneBatch(BuiltInModel& built, double clip) : built_(built), clip_(clip) {}

  Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) override {
    const std::span<const float> weights = seen.weights;
    const double loss = built_.model->loss_and_gradient(weights, built_.next_batch(plan), change);
    return apply_optimizer(built_, clip_, plan.rate, loss, weights, change);
  }

 private:
  BuiltInModel& built_;
  double clip_;
};

class Racing final : public Recipe {
 public:
  Racing(BuiltInModel& built, models::Hogwild workers) : built_(built), workers_(std::move(workers)) {}

  Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) override {
    std::vector<StepRule> rules;
    for (std::uint32_t batch = 0; batch < built_.batches; ++batch)
      rules.push_back(built_.optimizer->begin_step(plan.rate, seen.weights));
    return {workers_.round(seen.weights, built_.sampler->next_rows(), plan.size, rules, change), {}};
  }

  // As many workers are at work as it can run at once.
  void set_parallel(Parallel* parallel) override { workers_.set_parallel(parallel); }

  void add_memory(MemoryUse& use) const override {
    use.hogwild += workers_.memory_bytes();
    use.activations += workers_.activation_bytes();
  }

 private:
  BuiltInModel& built_;
  models::Hogwild workers_;
};

// The workers have models of their own beside the one that evaluates; activations come with the first batch.
Result<std::unique_ptr<Recipe>> make_racing(const RunConfig& config, BuiltInModel& built) {
  if (!built.optimizer->has_rule())
    return Error{Errc::usage, str("optimizer.hogwild shares single parameters, and optimizer.kind = \"",
                                  config.optimizer.kind, "\" steps whole matrices; set optimizer.hogwild = 0")};
  if (built.model->state_floats() > 0)
    return Error{Errc::usage, str("optimizer.hogwild takes mini-batches in any order, and model.family = \"",
                                  config.model.family, "\" has a state that goes on from one to the next; set "
                                  "optimizer.hogwild = 0")};
  std::vector<std::unique_ptr<models::Model>> models;
  for (std::uint32_t worker = 0; worker < config.hogwild; ++worker) {
    auto made = models::make_model(built.config);
    if (!made) return made.error();
    models.push_back(std::move(made).value());
  }
  return std::unique_ptr<Recipe>(
      std::make_unique<Racing>(built, models::Hogwild(std::move(models), built.data, config.optimizer.clip)));
}

}  // namespace

Recipe::Made apply_optimizer(BuiltInModel& built, double clip, double rate, double loss,
                             std::span<const float> weights, std::span<float> change) {
  if (clip > 0) models::clip_by_norm(change, clip);
  if (built.optimizer->has_rule()) return {loss, built.optimizer->begin_step(rate, weights)};
  built.optimizer->step(change, rate, change, weights);
  return {loss, {}};
}

Result<std::unique_ptr<Recipe>> make_recipe(const RunConfig& config, BuiltInModel& built) {
  const double clip = config.optimizer.clip;
  if (config.hogwild > 0) return make_racing(config, built);
  if (config.takes_local_steps())
    return std::unique_ptr<Recipe>(std::make_unique<LocalSteps>(built, clip));
  return std::unique_ptr<Recipe>(std::make_unique<OneBatch>(built, clip));
}

}  // namespace rumor
