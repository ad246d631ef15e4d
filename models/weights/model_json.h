// config.json: the description of a model beside its weights, in the format of Hugging Face's transformers.
//
// A GPT has that of a GPT2LMHeadModel, so that from_pretrained() reads a folder with it and model.safetensors. Other
// models have the keys of the run file: model_type mlp, cnn or lstm, and their layers.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <string_view>

#include "models/families/model.h"
#include "runtime/base/result.h"

namespace rumor::models {

std::string model_json(const ModelConfig& config);

// Reads family, vocabulary, context, layers, heads and embedding of a GPT. Other members are ignored, and values that
// a Gpt cannot honour (another activation, a scale by layer) are errors. `source` names the text in
// errors. Errors: Errc::corrupt (no JSON, or no such numbers), Errc::mismatch (another model than GPT-2).
Result<ModelConfig> parse_gpt_json(std::string_view text, const std::string& source);

}  // namespace rumor::models
