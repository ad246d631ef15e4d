// Joins the exports of the stages of a pipeline (gossip/PIPELINE.md): one peer of each stage has a part of the model.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/daemon/export/exported_weights.h"

namespace rumor::tools {

// Whether this state directory is of a peer that serves a stage.
bool serves_stage(const std::string& folder);

// The whole model: `parts` are the exports of `folders`, in the same order, which is not that of the stages. The run is
// the pipeline, the samples are those of the stage that has fewest; there is no digest and no table of contributions.
// Errors: Errc::usage for a missing stage, for one that is there twice, and for stages of several pipelines.
Result<daemon::ExportedWeights> join_stages(const std::vector<std::string>& folders,
                                            std::vector<daemon::ExportedWeights> parts);

}  // namespace rumor::tools
