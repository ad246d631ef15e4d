#include "runtime/daemon/status/bottleneck.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::daemon {
namespace {

constexpr double window_seconds = 10;
// Shares of the time from which a cause is named.
constexpr double notable = 0.2, nearly_all = 0.75;
constexpr double thin = 0.5;  // of the planned density; a peer with many neighbours begins with so much

std::string percent(double share) {
  return str(fixed(std::clamp(share, 0.0, 1.0) * 100, 0), " %");
}

const PeerStaleness* latest(const NodeStatus& s) {
  const auto it = std::max_element(s.staleness.begin(), s.staleness.end(),
                                   [](const auto& a, const auto& b) { return a.mean < b.mean; });
  return it == s.staleness.end() ? nullptr : &*it;
}

Limit not_training(const NodeStatus& s) {
  if (s.phase == "catching up")
    return {"joining", s.waiting_for.empty() ? "Not training yet: it takes weights and updates of other peers first."
                                             : "Not training yet: it looks for other peers first."};
  if (s.phase == "flushing")
    return {"done", "The run has its samples; this peer sends what it has learned and not sent yet."};
  if (s.phase == "finishing") return {"done", "The run has its samples; neighbours exchange the last updates."};
  return {"done", "The run has its samples: training is done, and this peer serves the others."};
}

Limit late(const NodeStatus& s) {
  if (s.unlike)
    return {"slow_peer", str("Data of peers are unlike: updates undo each other. Late ones, ",
                             fixed(s.staleness_mean(), 1), " of our steps old, lower the learning rate to ",
                             percent(s.rate_factor), ".")};
  const PeerStaleness* slow = latest(s);
  return {"slow_peer", str("Updates arrive late: they are ", fixed(s.staleness_mean(), 1), " of our steps old",
                           slow ? str(", those of ", slow->node.brief(), " ", fixed(slow->mean, 1)) : "",
                           ", so the learning rate is lowered to ", percent(s.rate_factor), ".")};
}

// A peer of a pipeline sees how busy it is itself, and which side it waits for; not why that side is slow.
Limit stage_pace(const NodeStatus& s, double compute, const StepWaits& waits) {
  const std::uint64_t stage = s.stage.stage;
  const std::string own = str("stage ", stage, " computes ", percent(compute), " of the time here");
  if (compute >= nearly_all)
    return {"compute", str("This machine: stage ", stage, " computes ", percent(compute),
                           " of the time here. More peers of this stage may help.")};
  if (waits.link >= notable && waits.link >= std::max(waits.above, waits.below))
    return {"link",
            str("The link to stage ", stage + 1, ": ", own, " and waits ", percent(waits.link), " for answers while ",
                "the link has more to send than it can. A narrower pipeline.border may help.")};
  if (waits.above + waits.link >= std::max(notable, waits.below))
    return {"slow_peer", str("Stage ", stage + 1, " or above, or the way there: ", own, " and waits ",
                             percent(waits.above + waits.link), " for answers.")};
  if (waits.below >= notable)
    return {"slow_peer", str("Stage ", stage - 1, stage > 2 ? " or below" : "", ", or the way there: ", own,
                             " and waits ", percent(waits.below), " for micro-batches.")};
  return {"pace", str("No stage alone: ", own, ", and waits ", percent(waits.above + waits.link), " for answers and ",
                      percent(waits.below), " for micro-batches. The rest is the pace of the run file and steps that ",
                      "begin and end.")};
}

// The time between two updates, where no other peer delays them.
Limit pace(const NodeStatus& s, double compute, double period_ms, const StepWaits& waits) {
  if (s.stage.stage > 0) return stage_pace(s, compute, waits);
  const std::string alone = s.peers.empty() ? " It trains alone: it has no neighbours." : "";
  const char* kind = !alone.empty() ? "alone" : compute >= nearly_all ? "compute" : "pace";
  if (compute >= nearly_all) return {kind, str("This machine: steps fill ", percent(compute), " of the time.", alone)};
  if (period_ms > 0)
    return {kind, str("The pace of the run file: a step at most every ", fixed(period_ms, period_ms < 10 ? 1 : 0),
                      " ms, and steps fill ", percent(compute), " of the time.", alone)};
  return {kind, str("This machine: steps fill ", percent(compute),
                    " of the time; applying updates and waiting for a processor take the rest.", alone)};
}

}  // namespace

Limit limit_of(const NodeStatus& s, double compute, const StepWaits& waits, double held, std::uint64_t steps,
               double period_ms) {
  if (s.phase != "training") return not_training(s);
  if (s.training.observes) return {"done", "It follows the run and does not train."};
  if (s.stage.stage > 0 && !s.waiting_for.empty()) return {"slow_peer", str("Another stage: ", s.waiting_for, ".")};
  if (waits.updates >= notable)
    return {"slow_peer", str("Other peers: training waits for them ", percent(waits.updates),
                             " of the time, as the run file asks.")};
  if (waits.links >= notable)
    return {"link", str("The network: training waits ", percent(waits.links), " of the time for links to carry its ",
                        "updates, as the run file asks.")};
  if (steps == 0) return {"compute", "The first step is being computed."};
  if (held >= notable)
    return {"link", str("The network: ", percent(held), " of the steps made no update, because links are full or ",
                        "neighbours lag; later updates carry what these steps learned.")};
  if (s.density_factor < thin)
    return {"link", str("The network: links are narrow, so updates have ", percent(s.density_factor),
                        " of their planned entries; later updates carry the rest.")};
  if (s.rate_factor < 1 - notable) return late(s);
  return pace(s, compute, period_ms, waits);
}

void Bottleneck::judge(double seconds, NodeStatus& s) {
  const TrainingFigures& t = s.training;
  marks_.push_back({seconds, computed_, t.steps, t.steps_held,
                    {t.seconds_waited, t.seconds_waited_links, s.stage.waited_above, s.stage.waited_link,
                     s.stage.waited_below}});
  while (marks_.size() > 2 && marks_[1].seconds <= seconds - window_seconds) marks_.pop_front();
  const Mark &first = marks_.front(), &last = marks_.back();
  const double span = std::max(last.seconds - first.seconds, 1e-3);
  const std::uint64_t steps = last.steps - first.steps;
  const double held = steps > 0 ? static_cast<double>(last.held - first.held) / static_cast<double>(steps) : 0;
  const double compute = std::clamp((last.computed - first.computed) / span, 0.0, 1.0);
  const StepWaits &from = first.waits, &to = last.waits;
  StepWaits shares{(to.updates - from.updates) / span, (to.links - from.links) / span, (to.above - from.above) / span,
                   (to.link - from.link) / span, (to.below - from.below) / span};
  // A wait that has not ended is not counted yet; only waiting_for tells of it.
  const bool waits = s.phase == "training" && steps == 0 && !s.waiting_for.empty() && !s.peers.empty();
  if (waits) (s.waits_for_links ? shares.links : shares.updates) = 1;
  s.limit = limit_of(s, compute, shares, held, last.steps, period_ms_);
  s.limit.compute_share = compute;
}

}  // namespace rumor::daemon
