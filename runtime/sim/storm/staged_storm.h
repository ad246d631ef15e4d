// Staged storm: a model in stages trains under the faults of a seed (gossip/PIPELINE.md, 13), as a training storm does
// with a whole model (training_storm.h). The same checkers watch the replicas of each stage; StagedPeers checks besides
// that no micro-batch counts twice.
//
// Not drawn: hostile hosts, copies of a disk on another host, and disks of other hosts.
//
// Thread: one owner; no threads inside.
#pragma once

#include "runtime/sim/stages/staged_result.h"
#include "runtime/sim/storm/training_storm.h"

namespace rumor::sim {

struct StagedStormResult {
  StagedResult result;  // what the run has shown; nothing when there is a violation before all was equal
  StormReport report;
};

// The request as run_staged_storm() takes it: without the kinds that are not drawn, its times fitted to the run.
StormRequest fitted_to_stages(StormRequest request, const RunConfig& config, const ClusterOptions& options);

// As run_training_storm(). Errors: those of StagedPeers::create().
Result<StagedStormResult> run_staged_storm(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                           const ClusterOptions& options, const StormRequest& request,
                                           const std::string& command, const Progress& progress);

}  // namespace rumor::sim
