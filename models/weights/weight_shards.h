// Writes a checkpoint into a folder: one model.safetensors, or shards with an index (models/weights/shard_index.h)
// where it is larger than wanted.
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/weights/safetensors_writer.h"
#include "runtime/base/result.h"

namespace rumor::models {

// Consecutive tensors of each shard, as [begin, end) pairs: as many as fit into shard_bytes of data, at least one.
std::vector<std::pair<std::size_t, std::size_t>> cut_into_shards(std::span<const SafetensorsTensor> tensors,
                                                                 std::uint64_t shard_bytes);

// All files are written beside their names first. Then they are renamed, the index last, and files of an earlier
// checkpoint that readers would take for this one's (another model.safetensors, index or shard) are removed. An error
// before that leaves the folder as it was. Errors: as write_safetensors.
Result<void> write_checkpoint(const std::string& folder, std::span<const SafetensorsTensor> tensors,
                              const SafetensorsMetadata& metadata, std::uint64_t shard_bytes);

}  // namespace rumor::models
