// DeviceRecipe: how a step of a built-in model turns the weights on a GPU into a change of them. Recipe is its
// counterpart on the CPU (runtime/training/recipe.h); of the recipes there a GPU has two:
//   one batch    the gradient of one mini-batch, and the optimizer's step as a rule for the compressor
//   local steps  several mini-batches, one after another, each at the weights plus the change so far
//                (runtime/training/local_steps.h); and every step of Muon, which is no rule
//
// Several GPUs: each has a part of every mini-batch. All else is on the first. Before every mini-batch of local
// steps that looks at other weights, the others get these, and the weights alone when the step ends.
//
// Thread: one caller at a time. Memory, device: that of the optimizer (gpu/optimizers/optimizer.h); local steps take
// two floats a parameter more, those of Muon three, a single mini-batch of Muon takes one.
#pragma once

#include <optional>

#include "gpu/compress/compressor.h"
#include "gpu/device/clip.h"
#include "gpu/models/split_model.h"
#include "gpu/optimizers/optimizer.h"
#include "runtime/training/recipe.h"

namespace rumor {

// The precision of all products, as model.precision says.
gpu::Precision precision_of(const RunConfig& config);

class DeviceRecipe {
 public:
  // Refers to all but the run file. Errors: Errc::limit.
  static Result<DeviceRecipe> create(const gpu::Gpu& gpu, const RunConfig& config, BuiltInModel& built,
                                     gpu::SplitModel& model);

  // As Recipe::make(); arrays and the rule's pointers are on the GPU. `weights`: as the copies of `model` show them.
  // `compressor` has the residual.
  // Errors: Errc::limit, Errc::io.
  Result<Recipe::Made> make(const StepPlan& plan, const gpu::DeviceArray<float>& weights,
                            gpu::DeviceCompressor& compressor, const gpu::DeviceArray<float>& change);

  gpu::DeviceOptimizer& optimizer() { return optimizer_; }
  const gpu::DeviceOptimizer& optimizer() const { return optimizer_; }
  void add_memory(MemoryUse& use) const;

 private:
  DeviceRecipe(const gpu::Gpu& gpu, const RunConfig& config, BuiltInModel& built, gpu::SplitModel& model,
               gpu::DeviceOptimizer optimizer);
  Result<void> make_room(bool several);
  Result<double> find_gradient(const StepPlan& plan, const gpu::DeviceArray<float>& at,
                               const gpu::DeviceArray<float>& gradient);
  Result<double> take_one(const StepPlan& plan, const gpu::DeviceArray<float>& at,
                          const gpu::DeviceArray<float>& change);
  Result<double> take_several(const StepPlan& plan, std::uint32_t batches, const gpu::DeviceArray<float>& weights,
                              gpu::DeviceCompressor& compressor, const gpu::DeviceArray<float>& change);

  const gpu::Gpu* gpu_;
  BuiltInModel* built_;
  gpu::SplitModel* model_;
  gpu::DeviceOptimizer optimizer_;
  std::optional<gpu::DeviceClip> clip_;  // where the run file says so
  bool local_steps_;                     // as the run file says
  gpu::DeviceArray<float> start_;        // with Muon: the weights with the residual
  gpu::DeviceArray<float> seen_;         // the same with the change so far
  gpu::DeviceArray<float> gradient_;     // of one mini-batch, where the step is no rule for the compressor
};

}  // namespace rumor
