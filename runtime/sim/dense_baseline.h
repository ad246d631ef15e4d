// The dense baseline (`exchange.mode = "sync"`): every step, all nodes' gradients are averaged, as by a ring
// all-reduce.
//
// It is what compressed broadcast is measured against: the same model, data, shards and batches, one
// optimizer on the mean gradient, no compression. In virtual time a step costs the slowest node's compute,
// then 2 (N-1) / N of the dense bytes over the slower of up- and downlink, and 2 (N-1) latencies.
#pragma once

#include "runtime/sim/cluster.h"

namespace rumor::sim {

// The rate is used as it stands: `optimizer.rate` is the rate of the whole, not shared between nodes, not
// scaled. Errors: Errc::usage for a model, optimizer or shard that does not fit.
Result<SimResult> run_dense_baseline(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                     const ClusterOptions& options, const Progress& progress);

}  // namespace rumor::sim
