#include "runtime/training/local_steps.h"

#include <algorithm>

#include "runtime/base/memory_bytes.h"

namespace rumor {

Recipe::Made LocalSteps::make(const StepPlan& plan, const Seen& seen, std::span<float> change) {
  private_.resize(change.size());
  gradient_.resize(change.size());
  std::fill(change.begin(), change.end(), 0.0f);
  double loss = 0;
  const std::uint32_t batches = built_.batches_of(plan.batches);
  for (std::uint32_t step = 0; step < batches; ++step) {
    move(seen, plan.peers, change);
    loss += built_.model->loss_and_gradient(private_, built_.sampler->next(plan.size), gradient_);
    if (clip_ > 0) models::clip_by_norm(gradient_, clip_);
    built_.optimizer->step(gradient_, plan.rate, gradient_, private_);
    for (std::size_t i = 0; i < change.size(); ++i) change[i] += gradient_[i];
  }
  return {loss / batches, {}};
}

void LocalSteps::move(const Seen& seen, std::size_t peers, std::span<const float> change) {
  if (!built_.optimizer->bears_full_rate()) {
    for (std::size_t i = 0; i < change.size(); ++i) private_[i] = seen.weights[i] + change[i];
    return;
  }
  const auto movers = static_cast<float>(peers);
  for (std::size_t i = 0; i < change.size(); ++i)
    private_[i] = seen.weights[i] + seen.residual[i] + movers * change[i];
}

void LocalSteps::add_memory(MemoryUse& use) const {
  use.view += capacity_bytes(private_);
  use.gradient += capacity_bytes(gradient_);
}

}  // namespace rumor
