// TextModel: a trained language model as `rumor sample` finds it, in a peer's state directory or a safetensors file.
//
// Thread: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/decoders/token_decoder.h"
#include "models/families/model.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::tools {

struct TextModel {
  std::vector<float> params;
  std::unique_ptr<models::TokenDecoder> decoder;  // refers to params
  long vocabulary = 0;
  std::optional<long> context;  // tokens that it sees at once; an LSTM has no limit
  std::string directory;        // its folder, which may also have a tokenizer's files
};

// `path`: a state directory (the newest whole checkpoint; a running peer is not disturbed), a directory with
// model.safetensors or model.safetensors.index.json, or one of these files. The names of the tensors tell an LSTM.
// config.json beside the weights describes a GPT or a Llama; a GPT needs none where `heads` is given. Errors:
// Errc::not_found (no such file, or no checkpoint), Errc::corrupt, Errc::mismatch (another model), Errc::usage (no
// config.json, or heads for an LSTM).
// A checkpoint of adapters is merged into its base, which is at `base` or, where that is empty, where the peer had it.
Result<TextModel> load_text_model(const std::string& path, std::optional<std::uint32_t> heads,
                                  const std::string& base = {});

// Whether it is a language model.
bool writes_text(const models::ModelConfig& config);

// The model with these weights, which `name` names in errors. `config`: with the facts of its rows. Requires:
// writes_text(config); with adapters, their base. Errors: Errc::mismatch (of other tensors).
Result<TextModel> text_model_of(const std::string& name, const models::ModelConfig& config, const ParamLayout& layout,
                                std::vector<float> params);

}  // namespace rumor::tools
