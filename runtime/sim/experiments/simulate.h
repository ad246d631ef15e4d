// simulate: one run in virtual time, in whichever way its run file says peers train together.
#pragma once

#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

// By `exchange.mode`. Errors: those of Cluster::create and Cluster::run, or of the mode (methods/methods.h).
// Thread: one, and none inside.
Result<SimResult> simulate(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress);

// Whether peers learn the same in that mode on every network, as methods in rounds do (methods/lock_step.h). Then
// ClusterOptions::learned may give their curve.
bool learns_alike_everywhere(std::string_view mode);

}  // namespace rumor::sim
