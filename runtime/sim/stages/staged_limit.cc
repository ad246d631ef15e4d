// The sentence about what limited a simulated pipeline. A simulation sees all stages; a peer only its own side
// (daemon/status/bottleneck.h).
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/stages/staged_result.h"

namespace rumor::sim {

namespace {

constexpr double nearly_all = 0.75, notable = 0.1;  // of the time

std::string percent_of(double share) { return str(fixed(std::clamp(share, 0.0, 1.0) * 100, 0), " %"); }

// ", while stage 1 waits 40 % for answers": the longest wait of a stage but `busy`; nothing if none is notable.
std::string longest_wait(const StagedResult& r, std::size_t busy) {
  std::size_t stage = 0;
  double longest = notable;
  const char* cause = nullptr;
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageResult& one = r.stages[i];
    const double answers = one.waited_above + one.waited_link, wait = std::max(answers, one.waited_below);
    if (i == busy || wait < longest) continue;
    stage = i, longest = wait;
    cause = answers >= one.waited_below ? " for answers" : " for micro-batches";
  }
  return cause == nullptr ? "" : str(", while stage ", stage + 1, " waits ", percent_of(longest), cause);
}

std::size_t stage_with_most(const StagedResult& r, double StageResult::*which) {
  const auto most = std::max_element(r.stages.begin(), r.stages.end(),
                                     [&](const auto& a, const auto& b) { return a.*which < b.*which; });
  return static_cast<std::size_t>(most - r.stages.begin());
}

}  // namespace

std::string limit_text(const StagedResult& r) {
  const std::size_t busy = stage_with_most(r, &StageResult::utilisation);
  const std::size_t full = stage_with_most(r, &StageResult::uplink);
  const double computes = r.stages[busy].utilisation, uplink = r.stages[full].uplink;
  if (computes >= nearly_all && computes >= uplink)
    return str("stage ", busy + 1, " limits training: it computes ", percent_of(computes), " of the time",
               longest_wait(r, busy));
  if (uplink >= nearly_all)
    return str("links limit training: the uplinks of stage ", full + 1, " are full ", percent_of(uplink),
               " of the time", longest_wait(r, full));
  return str("no stage or link alone: stage ", busy + 1, " computes most, ", percent_of(computes), " of the time",
             longest_wait(r, busy));
}

}  // namespace rumor::sim
