#include "runtime/training/local_steps.h"

#include <algorithm>

#include "runtime/base/memory_bytes.h"

namespace rumor {

Recipe::Made LocalSteps::make(const StepPlan& plan, std::span<const float> weights, std::span<float> change) {
  seen_.assign(weights.begin(), weights.end());
  gradient_.resize(weights.size());
  std::fill(change.begin(), change.end(), 0.0f);
  const float movers = built_.optimizer->bears_full_rate() ? static_cast<float>(plan.peers) : 1.0f;
  double loss = 0;
  const std::uint32_t batches = built_.batches_of(plan.batches);
  for (std::uint32_t step = 0; step < batches; ++step) {
    loss += built_.model->loss_and_gradient(seen_, built_.sampler->next(), gradient_);
    if (clip_ > 0) models::clip_by_norm(gradient_, clip_);
    built_.optimizer->step(gradient_, plan.rate, gradient_, seen_);
    for (std::size_t i = 0; i < change.size(); ++i) {
      change[i] += gradient_[i];
      seen_[i] = weights[i] + movers * change[i];
    }
  }
  return {loss / batches, {}};
}

void LocalSteps::add_memory(MemoryUse& use) const {
  use.view += capacity_bytes(seen_);
  use.gradient += capacity_bytes(gradient_);
}

}  // namespace rumor
