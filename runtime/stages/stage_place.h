// StagePlace: what a peer needs to know to serve one stage of a model that is cut (gossip/PIPELINE.md): the run of that
// stage, and the pipeline that it belongs to.
//
// Thread: plain values and functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/border/border_codec.h"
#include "gossip/pipeline/pipeline.h"
#include "models/data/dataset.h"
#include "runtime/run/run_config.h"

namespace rumor {

compress::BorderNumbers border_numbers(const PipelineRules& rules);

// Makes `config`, of the whole model, that of one stage: its part and its exit. `parts`: of models::cut_model().
// `stage`: from 1.
void take_stage(RunConfig& config, const std::vector<models::UnitRange>& parts, std::uint32_t stage);

// Errors: Errc::usage for settings that no stage can have.
Result<void> check_stages(const RunConfig& config);

struct StagePlace {
  RunConfig config;                  // of the stage's run: that of the whole model with the units of the stage
  gossip::PipelineOptions pipeline;  // without a stream

  // `config`: of the whole model, with two stages or more. `data` describes the rows, and needs to have none. `stage`:
  // from 1 to config.pipeline.stages. Errors: those of check_stages(), models::cut_model() and models::make_model().
  static Result<StagePlace> create(const RunConfig& config, const models::DataSet& data, std::uint32_t stage);
};

}  // namespace rumor
