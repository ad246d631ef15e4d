// Dense averaging of gradients at every step, and which way `exchange.mode = "sync"` means.
#include <algorithm>

#include "runtime/sim/methods/local_steps.h"
#include "runtime/sim/methods/lock_step.h"
#include "runtime/sim/methods/methods.h"

namespace rumor::sim {

namespace {

Result<SimResult> average_gradients(const MethodSetting& in) {
  Learners& learners = in.learners;
  std::vector<float> weights = learners.start(), gradient(weights.size()), sum(weights.size());
  const std::size_t bytes = 4 * weights.size();
  const auto optimizer = learners.optimizer();
  LockStep lock_step(in, {.state_bytes = bytes});
  // Gradients are added in the order of peers.
  const auto step = [&](const Round& round) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    const float share = 1.0f / static_cast<float>(round.peers.size());
    for (const std::size_t i : round.peers) {
      learners.gradient(i, weights, gradient);
      for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += gradient[p] * share;
    }
    if (in.config.optimizer.clip > 0) models::clip_by_norm(sum, in.config.optimizer.clip);
    optimizer->step(sum, learners.rate(round.progress(0)), gradient, weights);
    for (std::size_t p = 0; p < sum.size(); ++p) weights[p] += gradient[p];
  };
  auto result = lock_step.run(weights, step, [&](const Round& round) {
    lock_step.all_reduce(round.peers, static_cast<double>(bytes));
  });
  if (!result) return result.error();
  result->guarantee = "one model by construction: all step on the same mean";
  return result;
}

}  // namespace

Result<SimResult> run_sync(const MethodSetting& in) {
  const RoundRules& rules = in.config.round_rules;
  auto outer = outer_rule(in.config, in.learners.params(), in.options.nodes);
  if (!outer) return outer.error();
  if (rules.steps() == 1 && rules.participation == 1 && rules.outer == "none")
    return average_gradients(in);
  return average_models(in, *outer);
}

}  // namespace rumor::sim
