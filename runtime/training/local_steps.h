// LocalSteps: a step of several mini-batches, one after another, each at the weights plus the change so far.
//
// The change is this peer's share of what all peers do. The weights that the next mini-batch sees move by
// StepPlan::ahead times as much, as if the others moved alike: a peer that saw its own share alone would stand nearly
// still for a round, as late as the round is long. With N peers this is local SGD at the full learning rate (Stich,
// ICLR 2019), of which the N-th part is sent.
//
// Thread: one caller at a time. Memory: two floats a parameter, from the first step on.
#pragma once

#include "runtime/training/recipe.h"

namespace rumor {

class LocalSteps final : public Recipe {
 public:
  // Refers to `built`, as make_recipe(). clip: as models::OptimizerConfig.
  LocalSteps(BuiltInModel& built, double clip) : built_(built), clip_(clip) {}

  Made make(const StepPlan& plan, std::span<const float> weights, std::span<float> change) override;
  void add_memory(MemoryUse& use) const override;

 private:
  BuiltInModel& built_;
  double clip_;
  LargeVector<float> seen_;      // the weights with the change so far
  LargeVector<float> gradient_;  // of one mini-batch
};

}  // namespace rumor
