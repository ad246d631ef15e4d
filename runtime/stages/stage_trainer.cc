#include "runtime/stages/stage_trainer.h"

#include <utility>

#include "runtime/stages/stage_costs.h"
#include "runtime/stages/stage_place.h"

namespace rumor {
namespace {

// The gradient of a step is what the worker has summed up.
class CollectedGradient final : public Recipe {
 public:
  CollectedGradient(BuiltInModel& built, double clip, StageWorker worker)
      : built_(built), clip_(clip), worker_(std::move(worker)) {}

  StageWorker& worker() { return worker_; }
  gossip::MakeStep& complete() { return complete_; }

  Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) override {
    worker_.complete_step(complete_, seen.weights, change);
    return apply_optimizer(built_, clip_, plan.rate, static_cast<double>(complete_.loss), seen.weights,
                           change);
  }
  void add_memory(MemoryUse& use) const override { use.activations += worker_.memory_bytes(); }

 private:
  BuiltInModel& built_;
  double clip_;
  StageWorker worker_;
  gossip::MakeStep complete_;
};

Result<StageWorker> worker_of(const RunConfig& config, const std::shared_ptr<const models::DataSet>& data,
                              models::Shard shard, std::uint64_t sampling_seed, StageOptions options) {
  models::ModelConfig part = config.model;
  data->describe(part);
  if (part.units.begin > 0) return StageWorker::create(part, options, nullptr, std::nullopt);
  shard.seed = config.seed;
  shard.skew = config.data.skew;
  if (auto exists = models::check_shard(*data, shard); !exists) return exists.error();
  return StageWorker::create(part, options, data,
                             models::BatchSampler(data, shard, options.rows, sampling_seed));
}

}  // namespace

StageOptions stage_options(const RunConfig& config) {
  const PipelineRules& rules = config.pipeline;
  const std::uint32_t all = rules.micro_batches * (rules.overlap ? 2 : 1);
  return {border_numbers(rules), micro_batch_rows(config), rules.recompute ? 1 : all};
}

Result<StageTrainer> StageTrainer::create(const RunConfig& config,
                                          std::shared_ptr<const models::DataSet> data, models::Shard shard,
                                          std::uint64_t sampling_seed) {
  auto worker = worker_of(config, data, shard, sampling_seed, stage_options(config));
  if (!worker) return worker.error();
  StageTrainer made;
  auto trainer =
      ModelTrainer::create(config, std::move(data), shard, sampling_seed, [&](BuiltInModel& built) {
        auto recipe =
            std::make_unique<CollectedGradient>(built, config.optimizer.clip, std::move(worker).value());
        made.worker = &recipe->worker();
        made.complete = &recipe->complete();
        return recipe;
      });
  if (!trainer) return trainer.error();
  made.trainer = std::move(trainer).value();
  return made;
}

}  // namespace rumor
