// Moments: the state that all optimizers have, saved and restored: a number of steps, and vectors of floats.
//
// Thread: as models/optimizers/optimizer.h.
#pragma once

#include <span>
#include <vector>

#include "models/optimizers/optimizer.h"

namespace rumor::models {

class Moments : public Optimizer {
 public:
  // sizes: floats of each vector, zero at first.
  Moments(OptimizerConfig config, std::uint32_t params, const std::vector<std::size_t>& sizes);

  std::uint32_t params() const final { return params_; }
  std::size_t memory_bytes() const override;
  std::span<LargeVector<float>> moments() final { return moments_; }
  // Kind, steps, parameters, then the floats of each vector.
  Bytes save() const final;
  Result<void> load(BytesView state) final;

 protected:
  // Adam's step number steps_ at beta1 and this rate, without the pointers to its moments.
  StepRule adam_rule(double rate, double beta1) const;

  OptimizerConfig config_;
  std::uint32_t params_;
  std::uint64_t steps_ = 0;
  std::vector<LargeVector<float>> moments_;
};

}  // namespace rumor::models
