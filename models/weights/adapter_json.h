// adapter_config.json: the description of adapters beside adapter_model.safetensors, in the format of Hugging Face's
// PEFT, so that PeftModel.from_pretrained() reads a folder of the two.
//
// Thread: plain functions and values.
#pragma once

#include <string>
#include <string_view>

#include "models/families/adapters.h"
#include "runtime/base/result.h"

namespace rumor::models {

// Adapters and the base that they belong to.
struct AdapterDescription {
  std::string family;     // of the base: gpt or llama
  AdapterConfig adapter;  // without weights
  std::string base;       // path of the base's file or folder
  std::string base_hash;  // FrozenBase::hash, 64 hex digits; empty: not said. PEFT has no such member
};

std::string adapter_json(const AdapterDescription& description);

// `source` names the text in errors. Errors: Errc::corrupt (no JSON, or a member is missing); Errc::mismatch, naming
// the member that asks for what is not computed here (another type of adapters, rank-stabilised scaling, DoRA, biases).
Result<AdapterDescription> parse_adapter_json(std::string_view text, const std::string& source);

}  // namespace rumor::models
