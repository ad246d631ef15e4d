// Recipe: how a step of a built-in model turns the weights it sees into a change of them.
//
//   one batch    the gradient of one mini-batch. The compressor takes the optimizer's step within its own pass
//   local steps  several mini-batches, one after another, each at the weights plus the change so far
//                (runtime/training/local_steps.h; exchange.local_steps of a peer that broadcasts)
//   racing       several mini-batches that worker threads take from one another (models/optimizers/hogwild.h)
//   own model    one mini-batch at a model of the peer's own (runtime/training/own_model.h)
//
// Bits: a racing step with several threads differs from run to run; all others are the same on every machine.
//
// Thread: one caller at a time. Memory: racing as Hogwild, one batch none; the others have headers of their own.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "runtime/base/parallel.h"
#include "runtime/base/step_rule.h"
#include "runtime/training/built_in_model.h"
#include "runtime/training/memory_use.h"
#include "runtime/training/step.h"

namespace rumor {

class Recipe {
 public:
  virtual ~Recipe() = default;

  struct Made {
    double loss = 0;  // mean over the mini-batches
    // With a rule `change` is a gradient, and the rule has yet to make the change of it, once for each parameter.
    std::optional<StepRule> rule;
  };
  // Whether a step starts from the residual, too.
  virtual bool starts_from_residual() const { return false; }
  // A step starts from the weights that all peers share and, where starts_from_residual(), from the change that this
  // peer has not sent yet; otherwise `residual` may be empty.
  struct Seen {
    std::span<const float> weights, residual;
  };
  // One step, as the plan has it, written to `change`. Requires: as many floats as parameters in each.
  virtual Made make(const StepPlan& plan, const Seen& seen, std::span<float> change) = 0;

  // Threads for the recipe's own work, beside the model's. Must outlive its use.
  virtual void set_parallel(Parallel* /*parallel*/) {}
  virtual void add_memory(MemoryUse& /*use*/) const {}
};

// The end of a step whose `change` is the gradient: clipped (clip > 0), and with the optimizer's rule or, where it has
// none, made the change.
Recipe::Made apply_optimizer(BuiltInModel& built, double clip, double rate, double loss,
                             std::span<const float> weights, std::span<float> change);

// The recipe that the run file asks for, of a peer without a model of its own. Refers to `built`, which must outlive
// it, moved or not: pass it where it stays. Errors: those of models::make_model(); Errc::usage for Hogwild with an
// optimizer whose step is no rule, or with a model that has a state.
Result<std::unique_ptr<Recipe>> make_recipe(const RunConfig& config, BuiltInModel& built);

}  // namespace rumor
