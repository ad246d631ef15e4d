// GptSource: a trained GPT as `rumor sample` finds it, out of a peer's state directory or a safetensors file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/families/gpt.h"

namespace rumor::tools {

struct GptSource {
  models::GptShape shape;
  std::vector<float> params;
  std::string directory;  // its folder, which may also have a tokenizer's files
};

// `path`: a state directory (the newest whole checkpoint; a running peer is not disturbed), a directory with
// model.safetensors or model.safetensors.index.json, or one of these files. config.json beside the weights has the
// number of heads; `heads` overrides it. Errors: Errc::not_found (no such file, or no checkpoint), Errc::corrupt,
// Errc::mismatch (it is no GPT), Errc::usage (the number of heads is unknown).
Result<GptSource> load_gpt(const std::string& path, std::optional<std::uint32_t> heads);

}  // namespace rumor::tools
