// StageCosts: the cost of a micro-batch in each stage of a model that is cut: multiply-adds, and bytes on the borders.
// `rumor doctor` and `rumor sim` say from this what links allow.
//
// Thread: plain values and functions.
#pragma once

#include <cstdint>
#include <vector>

#include "models/data/dataset.h"
#include "runtime/run/run_config.h"

namespace rumor {

struct StageCosts {
  std::uint64_t params = 0;
  std::uint64_t multiply_adds = 0;  // of a row, forward and backward
  std::uint64_t up_bytes = 0;       // of a micro-batch to the stage above: labels and activations; 0 for the last stage
  std::uint64_t down_bytes = 0;     // to the stage below: gradients; 0 for the first stage
};

// One for each stage; frame heads are left out. `config`: of the whole model, with two stages or more. Errors: those of
// check_stages(), models::cut_model() and models::make_model().
Result<std::vector<StageCosts>> stage_costs(const RunConfig& config, const models::DataSet& data);

// Rows of a micro-batch.
std::uint32_t micro_batch_rows(const RunConfig& config);

}  // namespace rumor
