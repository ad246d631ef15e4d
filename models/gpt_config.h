// config.json: what Hugging Face keeps beside the weights of a GPT-2. Of all in it the number of heads alone
// cannot be seen from the tensors.
//
// Thread: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "models/model.h"
#include "runtime/base/result.h"

namespace rumor::models {

// For GPT2LMHeadModel.from_pretrained, beside model.safetensors. Requires: config.family is gpt.
std::string gpt_config_json(const ModelConfig& config);

// The number of heads in such a file. `name` is for the error text. Errors: Errc::corrupt (no JSON),
// Errc::mismatch (of no GPT-2; without n_head; with an activation other than gelu_new).
Result<std::uint32_t> heads_of_config(std::string_view json, const std::string& name);

}  // namespace rumor::models
