// ModelTrainer: a built-in model as a trainer. From the float view of the weights to the next update: a recipe makes
// the change (runtime/training/recipe.h), the compressor adds it to the residual and chooses entries, the encoder makes
// the payload.
//
// Where peers have models of their own (runtime/training/own_model.h), the view is the peer's model: public copy +
// residual.
//
// Threads: as runtime/training/trainer.h has them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "runtime/training/built_in_model.h"
#include "runtime/training/own_model.h"
#include "runtime/training/recipe.h"
#include "runtime/training/trainer.h"
#include "runtime/training/update_encoder.h"

namespace rumor {

class ModelTrainer final : public Trainer {
 public:
  // Makes the recipe of a trainer, which keeps `built` where it is.
  using RecipeMaker = std::function<std::unique_ptr<Recipe>(BuiltInModel& built)>;

  // `recipe`: instead of the run file's; then nobody can make the steps again. Errors: those of BuiltInModel::create().
  static Result<std::unique_ptr<ModelTrainer>> create(const RunConfig& config,
                                                      std::shared_ptr<const models::DataSet> data,
                                                      models::Shard shard, std::uint64_t sampling_seed,
                                                      const RecipeMaker& recipe = nullptr);

  const ParamLayout& layout() const override { return built_.layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return built_.initial_weights(); }

  void follow(Replica& replica) override;
  // view[i] = weights[i] on the grid, for every i.
  void refresh(std::span<const std::int32_t> weights);
  compress::FloatView view() override;
  OwnModel* own_model() override { return own_model_; }
  bool flushes() const override { return own_model_ == nullptr; }
  bool takes_batches() const override { return true; }
  bool wants_changes_of_others() const override { return built_.optimizer->wants_changes_of_others(); }
  const BuiltInModel& built() const { return built_; }
  std::shared_ptr<const models::DataSet> repeatable_data() const override {
    return repeatable_ ? built_.data : nullptr;
  }
  Bytes carried_state() const override;
  // Goes on from the carried_state() of another trainer that had drawn so many pieces (BatchRules::piece). Errors:
  // Errc::corrupt: it is that of no such trainer. Requires: no step was made; the model has no state from row to row.
  Result<void> resume(BytesView carried, std::uint64_t pieces);
  std::span<const float> residual() const override { return compressor_.residual(); }
  Bytes optimizer_state() const override { return built_.optimizer->save(); }
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override { return compressor_.stats(); }
  MemoryUse memory() const override;
  std::uint64_t multiply_adds() const override { return built_.multiply_adds(); }
  double share_of_work(std::uint32_t size) const override;
  // For the model and the recipe, too.
  void set_parallel(Parallel* parallel) override;
  Parallel& parallel() override { return codec_.parallel != nullptr ? *codec_.parallel : alone_; }

  StepResult step(const StepPlan& plan) override;
  // A part of a model has no loss of its own.
  bool evaluates() const override { return built_.model->part().is_whole(); }
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

 private:
  ModelTrainer(const RunConfig& config, BuiltInModel built);
  Result<void> make_recipe(const RunConfig& config);
  // The change of one step, and of none, added to the residual, and the update chosen.
  Result<void> absorb_step(const StepPlan& plan, StepResult& result);
  Result<void> absorb_nothing(const StepPlan& plan, StepResult& result);
  double drift() const;
  void revise(const StepPlan& plan);
  Result<void> encode(StepResult& result);

  BuiltInModel built_;
  std::unique_ptr<Recipe> recipe_;
  OwnModel* own_model_ = nullptr;  // the recipe, where the peer has a model of its own
  compress::Compressor compressor_;
  compress::CodecOptions codec_;
  Serial alone_;
  UpdateEncoder encoder_;
  bool repeatable_;  // the steps depend on nothing but plan, view and rows
  LargeVector<float> view_;
  LargeVector<float> change_;  // of a step, or its gradient
  LargeVector<float> copy_;    // the public part of an own model
};

}  // namespace rumor
