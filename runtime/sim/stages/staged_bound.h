// StagedBound: the most rows a second that a simulated pipeline could train, by the speeds of its replicas and by their
// links alone: min over the stages of the sum over its replicas of min(processor, uplink, downlink). No bubble, no
// updates on the links, no delay, and no forward pass made again (pipeline.recompute).
//
// Thread: plain values and functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/data/dataset.h"
#include "runtime/run/run_config.h"
#include "runtime/sim/cluster/cluster.h"
#include "runtime/stages/stage_costs.h"

namespace rumor::sim {

struct StagedBound {
  // One stage; where its replicas are unlike, their mean.
  struct Stage {
    StageCosts costs;
    double rows_per_second = 0;       // of all replicas together
    double compute_seconds = 0;       // of a micro-batch, of a replica
    double link_seconds = 0;          // the same, on the narrower of uplink and downlink
    double round_trip_seconds = 0;    // of the network, to a neighbouring stage and back
    bool is_link() const { return link_seconds > compute_seconds; }
    // Micro-batches that a replica needs in flight so that the way to the stage above and back leaves no gap.
    double in_flight() const;
  };
  std::vector<Stage> stages;
  std::size_t slowest = 0;  // of the stages
  double rows_per_second = 0;
};

// The virtual time of a micro-batch on host i: that of a step of the whole model has the share of its stage.
double compute_seconds(const RunConfig& config, const std::vector<StageCosts>& costs, const ClusterOptions& options,
                       std::size_t host);

// Host i serves stage i modulo the stages. Errors: those of stage_costs().
Result<StagedBound> staged_bound(const RunConfig& config, const models::DataSet& data, const ClusterOptions& options);

}  // namespace rumor::sim
