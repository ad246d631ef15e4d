// A peer that says one thing and computes another.
#pragma once

#include <climits>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/training/model_trainer.h"

namespace rumor::test {

// A trainer that records what an honest one would, and computes something else.
class Cheat final : public Trainer {
 public:
  using Step = std::function<StepResult(ModelTrainer& honest, StepPlan plan)>;
  using Lie = std::function<void(Bytes& state)>;
  Cheat(std::unique_ptr<ModelTrainer> honest, Step step, Lie lie = {})
      : honest_(std::move(honest)), step_(std::move(step)), lie_(std::move(lie)) {}

  const ParamLayout& layout() const override { return honest_->layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return honest_->initial_weights(); }
  void follow(Replica& replica) override { honest_->follow(replica); }
  compress::FloatView view() override { return honest_->view(); }
  std::shared_ptr<const models::DataSet> repeatable_data() const override {
    return asked_++ >= answers_ ? nullptr : honest_->repeatable_data();
  }
  // Has data only so often: for its records, and later none to make its own updates again with when it is charged.
  void have_data_for(int answers) { answers_ = answers; }
  Bytes carried_state() const override {
    Bytes state = honest_->carried_state();
    if (lie_) lie_(state);
    return state;
  }
  std::span<const float> residual() const override { return honest_->residual(); }
  Bytes optimizer_state() const override { return honest_->optimizer_state(); }
  Result<void> restore(std::span<const float> residual, BytesView optimizer) override {
    return honest_->restore(residual, optimizer);
  }
  compress::CompressorStats compression() const override { return honest_->compression(); }
  MemoryUse memory() const override { return honest_->memory(); }
  void set_parallel(Parallel* parallel) override { honest_->set_parallel(parallel); }
  Parallel& parallel() override { return honest_->parallel(); }
  StepResult step(const StepPlan& plan) override { return step_(*honest_, plan); }
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override {
    return honest_->evaluate(weights, rows_max);
  }

 private:
  std::unique_ptr<ModelTrainer> honest_;
  Step step_;
  int answers_ = INT_MAX;
  mutable int asked_ = 0;
  Lie lie_;  // about the state that it carries; empty: none
};

}  // namespace rumor::test
