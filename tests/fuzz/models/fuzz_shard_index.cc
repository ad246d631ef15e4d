// The index of a checkpoint in shards: what is accepted names files inside the folder, and its own text says the same.
#include "models/weights/shard_index.h"

#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(shard_index) {
  using namespace rumor::models;
  const auto index = parse_shard_index({reinterpret_cast<const char*>(data), size}, "index");
  if (!index) {
    RUMOR_CHECK(!index.error().text.empty());
    return 0;
  }
  for (const auto& [tensor, shard] : *index)
    RUMOR_CHECK(!shard.empty() && shard.front() != '/' && shard != ".." && shard.find("../") != 0);
  const auto again = parse_shard_index(shard_index_text(*index, size), "ours");
  RUMOR_CHECK(again.ok() && again->size() == index->size());
  return 0;
}
