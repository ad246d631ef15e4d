// Adapters from which a run starts instead of its seed: a folder with adapter_config.json and
// adapter_model.safetensors, as `rumor export` and Hugging Face's PEFT write it (models/weights/adapter_json.h).
//
// Rank, alpha and projections must be those of the run, since they decide what its peers train. Values become weights
// on the grid, as those of any start (models/weights/start_weights.h).
//
// Thread: plain functions and values.
#pragma once

#include <memory>
#include <string>

#include "models/weights/start_weights.h"

namespace rumor::models {

// Requires: `config` has adapters and a base, `layout` is that of the model of `config`. Errors: Errc::not_found for a
// folder without adapter_config.json; those of parse_adapter_json() and read_start_weights(); Errc::mismatch naming the
// key of the run that has another value, and for adapters that were trained beside another base and say so.
Result<std::shared_ptr<const StartWeights>> read_start_adapters(const std::string& folder, const ModelConfig& config,
                                                                const ParamLayout& layout, int grid_bits);

}  // namespace rumor::models
