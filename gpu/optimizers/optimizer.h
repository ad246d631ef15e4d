// DeviceOptimizer: an optimizer of models/optimizers with its moments on a GPU.
//
// A step that is a rule is taken by DeviceCompressor::absorb_step() in its pass, or by add_step() into an array. A step
// of Muon is taken by add_step() alone (models/optimizers/matrix_step.h). For each hidden matrix, its momentum and its
// direction are computed, of all matrices of a group together (gpu/optimizers/matrix_groups.h); the direction takes the
// place of the gradient. Then scans without candidates add the step: one for each matrix, or matrices side by side, and
// one for each stretch of other parameters. The directions do not depend on the learning rate, so that work is recorded
// once and begun with a single call.
//
// Bits: with a rule those of the CPU. With Muon, directions are within a tolerance (gpu/optimizers/newton_schulz.h),
// all else equal.
//
// Thread: one caller at a time. Memory, device: that of the optimizer's moments; for add_step() a byte for a thousand
// parameters; with Muon that of DeviceNewtonSchulz.
#pragma once

#include <optional>
#include <vector>

#include "gpu/device/device.h"
#include "gpu/device/repeated.h"
#include "gpu/optimizers/matrix_groups.h"
#include "gpu/optimizers/newton_schulz.h"
#include "models/optimizers/optimizer.h"

namespace rumor::gpu {

class DeviceOptimizer {
 public:
  // Refers to both, and begins with the optimizer's moments, which are from then on only a copy. `precision`: of Muon's
  // products. Errors: Errc::limit.
  static Result<DeviceOptimizer> create(const Gpu& gpu, models::Optimizer& optimizer, Precision precision);

  bool has_rule() const { return optimizer_->has_rule(); }
  // As models::Optimizer::begin_step(); the pointers of the rule lead to device memory. Requires: has_rule().
  StepRule begin_step(double rate, const DeviceArray<float>& weights) const;

  // change += the change of one step. `gradient` is used up. `weights`: where it was computed. All have a float a
  // parameter, and do not overlap. Errors: Errc::limit; those of products.
  Result<void> add_step(const DeviceArray<float>& gradient, double rate, const DeviceArray<float>& weights,
                        const DeviceArray<float>& change);

  // As models::Optimizer: the state has the same form, wherever the moments are. After a failure of the GPU, save()
  // gives the moments that were copied last.
  Bytes save() const;
  Result<void> load(BytesView state);

  // On the device.
  std::size_t memory_bytes() const;
  // How often directions were begun from a recording.
  std::uint64_t repeats() const { return directions_.repeats(); }

 private:
  // The arrays of a step.
  struct Arrays {
    const float* gradient;
    const float* weights;
    float* change;
  };

  DeviceOptimizer(const Gpu& gpu, models::Optimizer& optimizer)
      : gpu_(&gpu), optimizer_(&optimizer), directions_(gpu) {}
  Result<void> take_moments();
  Result<void> find_directions(float momentum, float* gradient);
  void add_matrix_step(const models::MatrixStep& step, const Arrays& arrays);
  void add(Change form, const StepRule& rule, std::uint32_t begin, std::uint32_t end, const Arrays& arrays);

  const Gpu* gpu_;
  models::Optimizer* optimizer_;
  std::vector<DeviceArray<float>> moments_;  // in the optimizer's order
  DeviceArray<Tile> tiles_;                  // of add(), which nobody reads
  DeviceArray<Selection> selection_;
  std::vector<PlacedGroup> groups_;  // of Muon's matrices
  std::optional<DeviceNewtonSchulz> newton_schulz_;
  Repeated directions_;
};

}  // namespace rumor::gpu
