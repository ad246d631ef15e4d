// LocalSteps: a step of several mini-batches, one after another, each at the weights plus the change so far.
//
// The change is this peer's share of what all peers do. With Muon the weights that the next mini-batch sees move N
// times as much, N being the number of live peers, as if the others moved alike: local SGD at the full learning rate
// (Stich, ICLR 2019), of which the N-th part is sent. A peer that saw its own share alone would stand nearly still for
// a round, as late as the round is long. Other optimizers bear no full rate on the gradients of one peer's small
// mini-batches (figures in METHODS.md), and see their own share.
//
// With Muon the copy also starts with the residual: what this peer has learned and not sent yet. From the shared
// weights alone it would learn that again in each round.
//
// Thread: one caller at a time. Memory: two floats a parameter, from the first step on.
#pragma once

#include "runtime/training/recipe.h"

namespace rumor {

class LocalSteps final : public Recipe {
 public:
  // Refers to `built`, as make_recipe(). clip: as models::OptimizerConfig.
  LocalSteps(BuiltInModel& built, double clip) : built_(built), clip_(clip) {}

  bool starts_from_residual() const override { return built_.optimizer->bears_full_rate(); }
  Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) override;
  void add_memory(MemoryUse& use) const override;

 private:
  // Puts the private copy where it is after `change`.
  void move(const Seen& seen, std::size_t peers, std::span<const float> change);

  BuiltInModel& built_;
  double clip_;
  LargeVector<float> private_;  // the copy
  LargeVector<float> gradient_;  // of one mini-batch
};

}  // namespace rumor
