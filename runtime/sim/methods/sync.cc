// Dense averaging of gradients at every step, and which way `exchange.mode = "sync"` means.
#include <algorithm>

#include "runtime/sim/methods/local_steps.h"
#include "runtime/sim/methods/lock_step.h"
#include "runtime/sim/methods/methods.h"

namespace rumor::sim {

namespace {

Result<SimResult> average_gradients(const RunConfig& config, const ClusterOptions& options, Learners& learners,
                                    const Absences& absences, const Progress& progress) {
  std::vector<float> weights = learners.start(), gradient(weights.size()), sum(weights.size());
  const std::size_t bytes = 4 * weights.size();
  const auto optimizer = learners.optimizer();
  LockStep lock_step(config, options, learners, absences, progress, {.state_bytes = bytes});
  // Gradients are added in the order of peers.
  const auto step = [&](const Round& round) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    const float share = 1.0f / static_cast<float>(round.peers.size());
    for (const std::size_t i : round.peers) {
      learners.gradient(i, weights, gradient);
      for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += gradient[p] * share;
    }
    if (config.optimizer.clip > 0) models::clip_by_norm(sum, config.optimizer.clip);
    optimizer->step(sum, learners.rate(round.progress(0)), gradient, weights);
    for (std::size_t p = 0; p < sum.size(); ++p) weights[p] += gradient[p];
    lock_step.all_reduce(round.peers, static_cast<double>(bytes));
  };
  auto result = lock_step.run(weights, step);
  if (!result) return result.error();
  result->guarantee = "one model by construction: all step on the same mean";
  return result;
}

}  // namespace

Result<SimResult> run_sync(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress) {
  auto absences = Absences::create(options, config.mode);
  if (!absences) return absences.error();
  auto learners = Learners::create(config, std::move(data), options);
  if (!learners) return learners.error();
  const RoundRules& rules = config.round_rules;
  auto outer = outer_rule(config, learners->params(), options.nodes);
  if (!outer) return outer.error();
  if (rules.local_steps == 1 && rules.participation == 1 && rules.outer == "none")
    return average_gradients(config, options, *learners, *absences, progress);
  return average_models(config, options, *learners, *absences, progress, *outer);
}

}  // namespace rumor::sim
