// rumor sim --stages: a model that is cut into stages, in virtual time.
#pragma once

#include <memory>

#include "runtime/sim/cluster/cluster.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

// Returns the exit status.
int run_staged_command(const SimCommand& command, const RunConfig& config,
                       const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                       const sim::Progress& progress, ProgressLine& line);

}  // namespace rumor::tools
