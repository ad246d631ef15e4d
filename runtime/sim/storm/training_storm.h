// Training storm: whole nodes train under the faults of a seed, watched by the checkers of the protocol-only storm
// (storm.h). So a user can try a run file of their own.
//
// First safety: while nine tenths of the run are trained, faults strike whose times are fitted to its length.
// Then liveness: they end, and within a bounded time the rest must be trained and all replicas be equal to
// the sum that the oracle made by itself.
//
// Thread: one owner; no threads inside. Memory: the payloads of all updates, besides the nodes.
#pragma once

#include "runtime/sim/cluster/cluster.h"
#include "runtime/sim/storm/storm.h"

namespace rumor::sim {

struct TrainingStormResult {
  SimResult result;  // what the run has shown; nothing when there is a violation before all was equal
  StormReport report;
};

// Nodes, network, step, curve and start are those of `options`, seed and faults those of `request`. `command`
// is what the replay line begins with. Errors: those of Node::create.
Result<TrainingStormResult> run_training_storm(const RunConfig& config,
                                               std::shared_ptr<const models::DataSet> data,
                                               const ClusterOptions& options, const StormRequest& request,
                                               const std::string& command, const Progress& progress);

// How long `config` trains when all goes well. Faults are timed by it (StormRequest::training).
Duration expected_training(const RunConfig& config, const ClusterOptions& options);

}  // namespace rumor::sim
