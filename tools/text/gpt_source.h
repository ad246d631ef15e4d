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
  std::string directory;  // where it lies: a tokenizer's files may lie beside it
};

// `path`: a state directory (the newest whole checkpoint; a running peer is not disturbed), a directory with
// model.safetensors, or a safetensors file. The number of heads stands in config.json beside the
// weights; `heads` takes its place. Errors: Errc::not_found (no such file, or no checkpoint), Errc::corrupt,
// Errc::mismatch (it is no GPT), Errc::usage (nothing says how many heads there are).
Result<GptSource> load_gpt(const std::string& path, std::optional<std::uint32_t> heads);

}  // namespace rumor::tools
