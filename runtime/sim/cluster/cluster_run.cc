// A whole run: watching its progress, and the figures and comparisons at its end.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

namespace {
// Virtual time after which a run that trains no further is given up: nothing in it takes this long.
constexpr Duration stalled = 600s;
constexpr std::uint64_t watched_every = 64;  // events
}  // namespace

bool Cluster::all_complete() const {
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (!up(i) || !node(i)->complete()) return false;
  return true;
}

TrainingRecord::Nodes Cluster::living() const {
  TrainingRecord::Nodes nodes;
  for (std::size_t i = 0; i < options_.nodes; ++i) nodes.push_back(up(i) ? &peer(i).node() : nullptr);
  return nodes;
}

std::uint64_t Cluster::most_samples() const {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (up(i)) most = std::max(most, node(i)->replica().samples());
  return most;
}

std::optional<Error> Cluster::failure() const {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (!up(i)) continue;
    if (const std::string text = peer(i).failure(); !text.empty())
      return Error{peer(i).not_finite() ? Errc::not_finite : Errc::io, str("node ", i, " ", text)};
  }
  if (!world_.violation()) return std::nullopt;
  return Error{Errc::io, str("node ", world_.violation()->host, " ", world_.violation()->text,
                             "; please report it with --sim-seed ", options_.seed)};
}

// Peers with models of their own can only guess how many samples all have seen. A comparison with other methods wants
// as many, so the record counts them, and the cluster ends the run.
void Cluster::finish_all() {
  finishing_ = true;
  for (std::size_t i = 0; i < options_.nodes; ++i) world_.set_finished(static_cast<HostId>(i), true);
}

Result<SimResult> Cluster::run(const Progress& progress) {
  std::uint64_t samples_seen = 0, events = 0;
  TimePoint last_progress = now();
  while (!all_complete() && world_.step()) {
    if (++events % watched_every != 0) continue;
    if (!record_->watch(living(), now(), progress)) {
      stop_early_ = true;
      break;
    }
    if (config_.has_own_models() && !finishing_ && record_->samples(living()) >= config_.samples) finish_all();
    if (const auto error = failure()) return *error;
    const std::uint64_t samples = most_samples();
    if (samples != samples_seen) last_progress = now();
    samples_seen = samples;
    if (now() - last_progress > stalled && !all_complete())
      return Error{Errc::io, str("the run stands still at ", samples, " samples after ",
                                 to_seconds(now().time_since_epoch()),
                                 " virtual seconds; please report it with --sim-seed ", options_.seed)};
  }
  if (const auto error = failure()) return *error;
  return conclude();
}

Result<SimResult> Cluster::conclude() {
  const TrainingRecord::Nodes nodes = living();
  if (std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return node == nullptr; }))
    return Error{Errc::io, "no node is alive at the end"};
  SimResult r = record_->conclude(nodes, now());
  r.sim_seed = options_.seed;
  r.trace_hash = world_.trace();
  Duration computed{0};
  for (HostId i = 0; i < world_.hosts(); ++i) computed += world_.host(i).computed;
  const double all_nodes = to_seconds(now().time_since_epoch()) * static_cast<double>(nodes.size());
  r.idle_fraction = all_nodes > 0 ? std::max(0.0, 1 - to_seconds(computed) / all_nodes) : 0;
  r.stopped_early = stop_early_;
  r.link_resets = faults_.link_resets();
  r.restarts = faults_.restarts();
  r.partitions = faults_.partitions();
  if (config_.mode == "broadcast" && !stop_early_ && r.lost + r.undelivered == 0 && !r.identical)
    return Error{
        Errc::diverged,
        "replicas hold the same updates and different bits; please report it with this run file and seed"};
  return r;
}

}  // namespace rumor::sim
