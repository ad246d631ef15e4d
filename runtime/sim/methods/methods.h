// Ways to train beside broadcast, in virtual time on the network that broadcast has: what it is measured against.
//
// One function each; runtime/METHODS.md says what each way is, what it costs and what it guarantees. They are honest
// baselines: exact float arithmetic, every byte and every wait counted, peers of the speeds that `options` gives them.
//
// `optimizer.rate` is taken as it stands. Errors, of all: Errc::usage for a model, optimizer, shard or fault that does
// not fit, Errc::not_finite when training diverges.
//
// Thread: plain functions, one thread.
#pragma once

#include "runtime/sim/training_record.h"
#include "runtime/sim/cluster.h"

namespace rumor::sim {

// Dense averaging (`exchange.mode = "sync"`): every step, all peers' gradients are averaged, as by a ring all-reduce,
// and one optimizer steps on the mean. A step costs the slowest peer's computing, then 2 (N-1) / N of the dense bytes
// over the slower of up- and downlink, and 2 (N-1) latencies (Patarasuk, Yuan, JPDC 2009). Peers that are away are not
// waited for.
Result<SimResult> run_sync(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress);

}  // namespace rumor::sim
