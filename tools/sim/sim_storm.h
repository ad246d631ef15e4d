// Storm seeds: runs under the faults that a seed chooses, of the protocol alone or of a whole training run. One line
// repeats a failure; --shrink makes it short.
#pragma once

#include <memory>

#include "runtime/sim/cluster/cluster.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

// Each returns the exit status: 0 when nothing that must hold was broken.
int run_protocol_storm(const SimCommand& command);
int run_training_storm(const SimCommand& command, const RunConfig& config,
                       const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                       const sim::Progress& progress, ProgressLine& line);
int run_staged_storm(const SimCommand& command, const RunConfig& config,
                     const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                     const sim::Progress& progress, ProgressLine& line);

}  // namespace rumor::tools
