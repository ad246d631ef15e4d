// A folder of weights as Hugging Face writes it: what lies beside the weights.
//
// Thread: plain functions and values.
#pragma once

#include <optional>
#include <string>

#include "models/families/model.h"
#include "runtime/base/result.h"

namespace rumor::models {

struct WeightsFolder {
  // As config.json says (models/weights/model_json.h has the supported types); nothing where there is none, or where
  // Rumor wrote it for a family of its own, whose keys the run file has.
  std::optional<ModelConfig> model;
  std::string tokenizer;  // the path of tokenizer.json; empty: there is none
  bool has_adapters_alone = false;  // there is an adapter_config.json, and no config.json
};

// A path that is no folder has neither. Errors: Errc::io, and those of parse_model_json().
Result<WeightsFolder> read_weights_folder(const std::string& path);

}  // namespace rumor::models
