// OwnModel: a step of a peer that has a model of its own, its public copy and what waits in the residual
// (runtime/exchange/neighbourhood.h).
//
// Beside its own gradient a step has one of two parts from the neighbours. Where peers average, it pulls the model
// towards the copies of others. Where they codistill, it pulls what the model predicts towards what these predict for
// the same batch: Anil, Pereyra, Passos, Ormandi, Dahl, Hinton, ICLR 2018, "Large scale distributed neural network
// training through online distillation". Teachers answer together, with the mean of their probabilities
// (models/evaluate/ensemble.h), and that joins the loss with a weight (models/layers/soft_targets.h).
//
// Thread: one caller at a time. Memory: a float a parameter for the pull, one for each teacher.
#pragma once

#include <vector>

#include "runtime/training/recipe.h"

namespace rumor {

class Neighbourhood;

class OwnModel final : public Recipe {
 public:
  // Refers to `built`, as make_recipe().
  OwnModel(const RunConfig& config, BuiltInModel& built);

  // After View::follow(): the next step adds Neighbourhood::pull(share) to its change. Where peers average.
  void pull_towards(const Neighbourhood& neighbours, double share);
  // After View::follow(): the next step learns from the predictions of these weights, too; they are copied. Where peers
  // codistill.
  void learn_from(std::span<const std::span<const std::int32_t>> teachers);

  Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) override;
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  void add_memory(MemoryUse& use) const override;

 private:
  BuiltInModel& built_;
  double clip_;
  Parallel* parallel_ = nullptr;
  Serial alone_;
  float agreement_;           // weight of the teachers' prediction
  LargeVector<float> pull_;   // where peers average
  std::vector<LargeVector<float>> teachers_;
  std::vector<float> taught_;  // their mean prediction for a batch
};

}  // namespace rumor
