// Adapters and their base become the weights of one model without adapters (models/families/adapters.h).
//
// Thread: plain functions and values. Memory: one copy of the base's weights.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/families/model.h"
#include "models/weights/adapter_json.h"
#include "runtime/base/result.h"

namespace rumor::models {

// The description in a folder's adapter_config.json; nothing where there is none. Errors: Errc::io and those of
// parse_adapter_json().
Result<std::optional<AdapterDescription>> adapters_beside(const std::string& folder);

struct MergedWeights {
  ParamLayout layout;
  std::vector<float> weights;
};

// `whole`: the base without adapters. `base`: path of its weights; empty: description.base. Errors: those of
// read_base() and plan_adapters(); Errc::usage where no path is known; Errc::mismatch for adapters of another layout,
// and for a base with another hash than the description's, if it has one.
Result<MergedWeights> merge_into_base(const AdapterDescription& description, const ModelConfig& whole,
                                      const ParamLayout& layout, std::span<const float> adapters,
                                      const std::string& base);

}  // namespace rumor::models
