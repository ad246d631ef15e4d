// TextModel: a trained language model as `rumor sample` finds it, in a peer's state directory or a safetensors file.
//
// Thread: one owner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/families/token_decoder.h"
#include "runtime/base/result.h"

namespace rumor::tools {

struct TextModel {
  std::vector<float> params;
  std::unique_ptr<models::TokenDecoder> decoder;  // refers to params
  long vocabulary = 0;
  std::optional<long> context;  // tokens that a GPT sees at once; an LSTM has no limit
  std::string directory;        // its folder, which may also have a tokenizer's files
};

// `path`: a state directory (the newest whole checkpoint; a running peer is not disturbed), a directory with
// model.safetensors, or a safetensors file. The names of the tensors say whether it is an LSTM or a GPT. config.json
// beside the weights has the number of a GPT's heads; `heads` overrides it. Errors: Errc::not_found (no such file, or
// no checkpoint), Errc::corrupt, Errc::mismatch (it is neither), Errc::usage (the number of heads is unknown, or heads
// for an LSTM).
Result<TextModel> load_text_model(const std::string& path, std::optional<std::uint32_t> heads);

}  // namespace rumor::tools
