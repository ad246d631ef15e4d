// config.json: what a model is, beside its weights, in the words of Hugging Face's transformers.
//
// A GPT's is that of a GPT2LMHeadModel, so that from_pretrained() reads a folder of it and model.safetensors.
// Others say the same as the run file: model_type mlp or cnn, and what their layers are.
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
// errors. Errors: Errc::corrupt (no JSON, or no such numbers), Errc::mismatch (of another model than GPT-2).
Result<ModelConfig> parse_gpt_json(std::string_view text, const std::string& source);

}  // namespace rumor::models
