// Data sets in memory, their shards, and batches from them.
//
// Thread: a DataSet is immutable once loaded and may be shared; a BatchSampler has one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "runtime/base/prng.h"
#include "runtime/base/result.h"

namespace rumor::models {

struct DataConfig {
  std::string kind = "synthetic";  // idx | synthetic
  std::string path;                // idx: directory of the four MNIST-style files, plain or .gz
  std::uint64_t seed = 1;          // synthetic: what is generated
};

// x: rows * inputs floats, normalised by the training set's mean and deviation.
struct Examples {
  std::vector<float> x;
  std::vector<std::uint8_t> label;
  std::uint32_t rows = 0;
};

struct DataSet {
  std::string name;
  std::uint32_t inputs = 0, classes = 0;
  Examples train, test;
};

// Errors: Errc::not_found (names the file and the package or command that brings it), Errc::corrupt (names the file,
// the offset and what is wrong there), Errc::usage (unknown kind).
Result<std::shared_ptr<const DataSet>> load_data(const DataConfig& config);

// Peer i of n: an equal, disjoint part of the training set, drawn by a shuffle that depends on `seed` alone.
struct Shard {
  std::uint32_t index = 0, count = 1;
};

// Endless batches over a shard: shuffled anew each epoch, the order fixed by (seed, shard).
class BatchSampler {
 public:
  // Requires: shard.index < shard.count <= train rows; batch >= 1. `data` is kept alive.
  BatchSampler(std::shared_ptr<const DataSet> data, Shard shard, std::uint32_t batch, std::uint64_t seed);

  // Valid until the next call.
  Batch next();
  std::uint32_t rows() const { return static_cast<std::uint32_t>(order_.size()); }

 private:
  std::shared_ptr<const DataSet> data_;
  std::uint32_t batch_;
  Prng prng_;
  std::vector<std::uint32_t> order_;
  std::size_t at_ = 0;
  std::vector<float> x_;
  std::vector<std::uint8_t> label_;
};

}  // namespace rumor::models
