// ModelTrainer: a built-in model as a trainer. From the float view of the weights to the next update: batch, gradient,
// optimizer, residual, selection, payload.
//
// Threads: as runtime/trainer.h has them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/budget.h"
#include "models/dataset.h"
#include "models/hogwild.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "runtime/run_config.h"
#include "runtime/trainer.h"

namespace rumor {

// Mean loss and accuracy over the first `rows_max` test rows, in blocks that bound the model's activations.
models::Evaluation evaluate_on_test(const models::DataSet& data, std::uint32_t rows_max,
                                    const std::function<models::Evaluation(const models::Batch&)>& evaluate);
models::Evaluation evaluate_on_test(models::Model& model, const models::DataSet& data,
                                    std::span<const float> weights, std::uint32_t rows_max);

// Batches differ between peers by shard; two peers on the same shard still draw in different orders.
std::uint64_t sampling_seed(const RunConfig& config, const NodeId& node);

class ModelTrainer final : public Trainer {
 public:
  // Errors: Errc::usage for an unknown model or optimizer, Errc::limit for a shard without enough rows.
  static Result<std::unique_ptr<ModelTrainer>> create(const RunConfig& config,
                                                      std::shared_ptr<const models::DataSet> data,
                                                      models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const override { return model_->layout(); }
  LargeVector<std::int32_t> initial_weights() const override;

  void follow(Replica& replica) override;
  // view[i] = weights[i] on the grid, for every i.
  void refresh(std::span<const std::int32_t> weights);
  compress::FloatView view() override;
  bool wants_changes_of_others() const override { return optimizer_->wants_changes_of_others(); }
  std::span<const float> residual() const override { return compressor_->residual(); }
  Bytes optimizer_state() const override { return optimizer_->save(); }
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override { return compressor_->stats(); }
  MemoryUse memory() const override;
  std::uint64_t multiply_adds() const override { return model_->multiply_adds(batch_); }
  // For the model too, and for Hogwild! workers, of which as many are at work as it can run at once.
  void set_parallel(Parallel* parallel) override;
  Parallel& parallel() override { return codec_.parallel != nullptr ? *codec_.parallel : alone_; }

  // The optimizer's step is taken inside the compressor's pass, with the bits of one after the other. With Hogwild!
  // workers a step is a round of theirs, and what they changed goes the same way.
  StepResult step(const StepPlan& plan) override;
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

  // Weights as floats.
  static std::vector<float> to_floats(std::span<const std::int32_t> weights, int grid_bits);
  static void to_floats(std::span<const std::int32_t> weights, int grid_bits, std::span<float> floats);

 private:
  ModelTrainer(const RunConfig& config, std::shared_ptr<const models::DataSet> data);
  Result<void> make_workers(const RunConfig& config, const models::ModelConfig& model);
  Result<void> absorb_batch(const StepPlan& plan, StepResult& result);
  Result<void> absorb_round(const StepPlan& plan, StepResult& result);
  void revise(const StepPlan& plan);
  void encode(StepResult& result);

  int grid_bits_;
  std::uint32_t batch_, batches_;  // rows of a mini-batch, mini-batches of a step
  double clip_;
  std::uint64_t seed_;
  std::shared_ptr<const models::DataSet> data_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<models::Optimizer> optimizer_;
  std::optional<models::Hogwild> hogwild_;  // where the run file says so
  std::optional<models::BatchSampler> sampler_;
  std::unique_ptr<compress::Compressor> compressor_;
  compress::CodecOptions codec_;
  Serial alone_;
  std::optional<compress::ByteBudget> budget_;  // where the run file has one in bytes
  double seconds_held_ = 0;                     // of steps without an update, since the last
  LargeVector<float> view_, gradient_;
};

}  // namespace rumor
