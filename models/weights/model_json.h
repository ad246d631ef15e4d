// config.json: the description of a model beside its weights, in the format of Hugging Face's transformers.
//
// A GPT has that of a GPT2LMHeadModel, and a Llama that of a LlamaForCausalLM, so that from_pretrained() reads a folder
// with it and model.safetensors. Other models have the keys of the run file: model_type mlp, cnn or
// lstm, and their layers.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <string_view>

#include "models/families/model.h"
#include "runtime/base/result.h"

namespace rumor::models {

std::string model_json(const ModelConfig& config);

// Reads a model of type gpt2, llama, mistral or qwen2: its family, vocabulary and sizes. The context is the longest
// that the weights were made for. Other members are ignored, but for those that ask for what is not computed here
// (another activation, a sliding window, experts, quantised weights). `source` names the text in errors.
// Errors: Errc::corrupt (no JSON, or a number is missing), Errc::mismatch naming the type or the member.
Result<ModelConfig> parse_model_json(std::string_view text, const std::string& source);

// True for a text that model_json() made for a family that only Rumor has: mlp, cnn or lstm.
bool is_own_model_json(std::string_view text);

}  // namespace rumor::models
