// rumor sim --stages: a model that is cut into stages, in virtual time.
#pragma once

#include <memory>

#include "runtime/sim/cluster/cluster.h"
#include "runtime/sim/stages/staged_result.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

// Writes --json and prints the table of the stages. Returns the exit status, as the following does.
int output_staged(const sim::StagedResult& result, const RunConfig& config, const SimCommand& command);
int run_staged_command(const SimCommand& command, const RunConfig& config,
                       const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                       const sim::Progress& progress, ProgressLine& line);

}  // namespace rumor::tools
