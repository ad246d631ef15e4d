// A whole run: watching its progress, and the figures and comparisons at its end.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

namespace {
// Virtual time after which a run that trains no further is given up: nothing in it takes this long.
constexpr Duration stalled = 600s;
}  // namespace

bool Cluster::all_complete() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Slot& slot) { return slot.node && slot.node->complete(); });
}

TrainingRecord::Nodes Cluster::living() const {
  TrainingRecord::Nodes nodes;
  for (const Slot& slot : nodes_) nodes.push_back(slot.node.get());
  return nodes;
}

std::string Cluster::last_words() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].ended && *nodes_[i].ended != 0)
      return str("node ", i, " ended with status ", *nodes_[i].ended, ": ", nodes_[i].last_note);
  return "";
}

// Peers with models of their own can only guess how many samples all have seen; what is compared to other ways is to
// have seen as many.
void Cluster::finish_all() {
  finishing_ = true;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].node == nullptr) continue;
    NodeOutbox out;
    nodes_[i].node->finish(now_, out);
    carry_out(i, out, i);
  }
}

Result<SimResult> Cluster::run(const Progress& progress) {
  std::uint64_t samples_seen = 0, events = 0;
  TimePoint last_progress = now_;
  while (!all_complete() && !queue_.empty()) {
    auto [at, event] = queue_.pop();
    now_ = at;
    handle(event);
    if (++events % 64 != 0) continue;
    if (!record_->watch(living(), now_, progress)) {
      stop_early_ = true;
      break;
    }
    if (config_.has_own_models() && !finishing_ && record_->samples(living()) >= config_.samples) finish_all();
    if (const std::string words = last_words(); !words.empty())
      return Error{not_finite_ ? Errc::not_finite : Errc::io, words};
    std::uint64_t samples = 0;
    for (const Slot& slot : nodes_)
      samples = std::max(samples, slot.node ? slot.node->replica().samples() : 0);
    if (samples != samples_seen) last_progress = now_;
    samples_seen = samples;
    if (now_ - last_progress > stalled && !all_complete())
      return Error{Errc::io, str("the run stands still at ", samples, " samples after ",
                                 to_seconds(now_.time_since_epoch()),
                                 " virtual seconds; please report it with --sim-seed ", options_.seed)};
  }
  return conclude();
}

Result<SimResult> Cluster::conclude() {
  const TrainingRecord::Nodes nodes = living();
  if (std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return node == nullptr; }))
    return Error{Errc::io, "no node is alive at the end"};
  SimResult r = record_->conclude(nodes, now_);
  r.sim_seed = options_.seed;
  r.trace_hash = trace_;
  const double all_nodes = to_seconds(now_.time_since_epoch()) * static_cast<double>(nodes_.size());
  r.idle_fraction = all_nodes > 0 ? std::max(0.0, 1 - to_seconds(computed_) / all_nodes) : 0;
  r.stopped_early = stop_early_;
  r.link_resets = link_resets_;
  r.restarts = restarts_;
  r.partitions = partitions_;
  if (config_.mode == "broadcast" && !stop_early_ && r.lost == 0 && !r.identical)
    return Error{
        Errc::diverged,
        "replicas hold the same updates and different bits; please report it with this run file and seed"};
  return r;
}

}  // namespace rumor::sim
