#include "models/weights/weight_shards.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "models/weights/shard_index.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

namespace fs = std::filesystem;

// "model-00002-of-00005.safetensors"
std::string shard_name(std::size_t number, std::size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

bool is_shard_name(const std::string& name) {
  std::size_t number = 0, count = 0;
  return std::sscanf(name.c_str(), "model-%zu-of-%zu.safetensors", &number, &count) == 2 &&
         name == shard_name(number, count);
}

// The files of one checkpoint, written beside their names until they are published.
class Publication {
 public:
  explicit Publication(std::string folder) : folder_(std::move(folder)) {}
  ~Publication() {
    std::error_code ignored;
    for (const std::string& name : written_) fs::remove(part(name), ignored);
  }
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  Result<void> add(const std::string& name, std::span<const SafetensorsTensor> tensors,
                   const SafetensorsMetadata& metadata) {
    written_.push_back(name);
    return write_safetensors_part(part(name), tensors, metadata);
  }
  Result<void> add(const std::string& name, const std::string& text) {
    written_.push_back(name);
    std::ofstream out(part(name), std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (out) return {};
    return Error{Errc::io, str("cannot write ", part(name), ": is the folder there, and is there room?")};
  }
  Result<void> publish() {
    std::error_code failure;
    for (const std::string& name : written_) {
      fs::rename(part(name), whole(name), failure);
      if (failure) return Error{Errc::io, str("cannot write ", whole(name), ": ", failure.message())};
    }
    remove_others();
    return {};
  }

 private:
  std::string whole(const std::string& name) const { return str(folder_, "/", name); }
  std::string part(const std::string& name) const { return whole(name) + ".part"; }

  void remove_others() const {
    std::vector<fs::path> others;
    std::error_code failure;
    for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure)) {
      const std::string name = entry->path().filename().string();
      const bool is_weights = name == "model.safetensors" || name == shard_index_name || is_shard_name(name);
      if (is_weights && std::find(written_.begin(), written_.end(), name) == written_.end())
        others.push_back(entry->path());
    }
    for (const fs::path& other : others) fs::remove(other, failure);
  }

  std::string folder_;
  std::vector<std::string> written_;
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> cut_into_shards(std::span<const SafetensorsTensor> tensors,
                                                                 std::uint64_t shard_bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> shards;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t more = tensors[i].file_bytes();
    if (shards.empty() || (bytes > 0 && bytes + more > shard_bytes)) {
      shards.emplace_back(i, i);
      bytes = 0;
    }
    bytes += more;
    shards.back().second = i + 1;
  }
  return shards;
}

Result<void> write_checkpoint(const std::string& folder, std::span<const SafetensorsTensor> tensors,
                              const SafetensorsMetadata& metadata, std::uint64_t shard_bytes) {
  const auto shards = cut_into_shards(tensors, shard_bytes);
  Publication files(folder);
  if (shards.size() <= 1) {
    if (auto added = files.add("model.safetensors", tensors, metadata); !added) return added;
    return files.publish();
  }
  ShardIndex index;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i + 1, shards.size());
    const auto part = tensors.subspan(shards[i].first, shards[i].second - shards[i].first);
    if (auto added = files.add(name, part, metadata); !added) return added;
    for (const SafetensorsTensor& tensor : part) {
      index.emplace(tensor.name, name);
      total += tensor.file_bytes();
    }
  }
  if (auto added = files.add(std::string(shard_index_name), shard_index_text(index, total)); !added) return added;
  return files.publish();
}

}  // namespace rumor::models
