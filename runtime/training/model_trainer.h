// ModelTrainer: a built-in model as a trainer. From the float view of the weights to the next update: batch, gradient,
// optimizer, residual, selection, payload.
//
// Where peers have models of their own the view is such a one, public copy + residual
// (runtime/exchange/neighbourhood.h), and a step draws it besides towards the copies of others, or what it predicts
// towards what these predict for the same batch: codistillation (Anil, Pereyra, Passos, Ormandi, Dahl, Hinton, ICLR
// 2018, "Large scale distributed neural network training through online distillation"). Teachers answer together, with
// the mean of their probabilities (models/evaluate/ensemble.h), and that joins the loss with a weight
// (models/layers/soft_targets.h).
//
// Threads: as runtime/training/trainer.h has them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/optimizers/hogwild.h"
#include "runtime/training/built_in_model.h"
#include "runtime/training/trainer.h"
#include "runtime/training/update_encoder.h"

namespace rumor {

class ModelTrainer final : public Trainer {
 public:
  // Errors: those of BuiltInModel::create().
  static Result<std::unique_ptr<ModelTrainer>> create(const RunConfig& config,
                                                      std::shared_ptr<const models::DataSet> data,
                                                      models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const override { return built_.layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return built_.initial_weights(); }

  void follow(Replica& replica) override;
  // view[i] = weights[i] on the grid, for every i.
  void refresh(std::span<const std::int32_t> weights);
  compress::FloatView view() override;
  bool has_own_model() const override { return own_model_; }
  void draw(const Neighbourhood& neighbours, double share) override;
  void learn_from(std::span<const std::span<const std::int32_t>> teachers) override;
  bool wants_changes_of_others() const override { return built_.optimizer->wants_changes_of_others(); }
  std::span<const float> residual() const override { return compressor_.residual(); }
  Bytes optimizer_state() const override { return built_.optimizer->save(); }
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override { return compressor_.stats(); }
  MemoryUse memory() const override;
  std::uint64_t multiply_adds() const override { return built_.multiply_adds(); }
  // For the model too, and for Hogwild! workers, of which as many are at work as it can run at once.
  void set_parallel(Parallel* parallel) override;
  Parallel& parallel() override { return codec_.parallel != nullptr ? *codec_.parallel : alone_; }

  // The optimizer's step is taken inside the compressor's pass, with the bits of one after the other. With Hogwild!
  // workers a step is a round of theirs, and what they changed goes the same way.
  StepResult step(const StepPlan& plan) override;
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

 private:
  ModelTrainer(const RunConfig& config, BuiltInModel built);
  Result<void> make_workers(std::uint32_t workers);
  Result<void> absorb_batch(const StepPlan& plan, StepResult& result);
  Result<void> absorb_round(const StepPlan& plan, StepResult& result);
  Result<void> absorb_own(const StepPlan& plan, StepResult& result);
  double taught_gradient();
  void revise(const StepPlan& plan);
  Result<void> encode(StepResult& result);

  BuiltInModel built_;
  double clip_;
  std::optional<models::Hogwild> hogwild_;  // where the run file says so
  compress::Compressor compressor_;
  compress::CodecOptions codec_;
  Serial alone_;
  UpdateEncoder encoder_;
  LargeVector<float> view_, gradient_;
  bool own_model_;
  LargeVector<float> copy_, pull_;  // of an own model: what is public of it; and where peers average, what draws it
  float agreement_;                 // weight of what teachers predict
  std::vector<LargeVector<float>> teachers_;
  std::vector<float> taught_;  // their mean prediction for a batch
};

}  // namespace rumor
