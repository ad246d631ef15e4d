// simulate: one run in virtual time, in whichever way its run file says peers train together.
#pragma once

#include "runtime/sim/cluster.h"

namespace rumor::sim {

// By `exchange.mode`. Errors: those of Cluster::create and Cluster::run, or of the mode (methods/methods.h).
// Thread: one, and none inside.
Result<SimResult> simulate(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress);

}  // namespace rumor::sim
