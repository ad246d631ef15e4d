// The index of a checkpoint in several safetensors files, as Hugging Face writes it:
//
//   {"metadata": {"total_size": 4194304}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
//
// The reader accepts untrusted text: it is parsed without building a tree, `metadata` is skipped, and every shard must
// be a path that stays in the folder of the index.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor::models {

// The name of the index beside the shards.
inline constexpr std::string_view shard_index_name = "model.safetensors.index.json";
inline constexpr std::uint64_t shard_index_bytes_max = 100'000'000;

// Files by the names of their tensors. Paths are relative to the folder of the index.
using ShardIndex = std::map<std::string, std::string>;

// `source` names the text in errors. Errors: Errc::corrupt: no such JSON, a tensor that it names twice, a path that is
// empty, absolute or leaves the folder.
Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& source);

// The text of an index. total_bytes: of the data of all tensors.
std::string shard_index_text(const ShardIndex& index, std::uint64_t total_bytes);

}  // namespace rumor::models
