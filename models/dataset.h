// Data sets in memory, their shards, and batches from them.
//
// Kinds: `idx`, the four files of MNIST and its relatives, plain or gzip (models/idx.h); `synthetic`, a
// generated classification task that needs no files (models/synthetic.cc).
//
// Values are bytes and stay bytes: the training set is stored as it came (Fashion-MNIST: 47 MB instead of
// 188), and a batch is normalised when it is drawn, x = (byte - mean) * scale, with the training set's mean
// and 1 / deviation.
// The sums behind these are exact integers, so every peer computes with the same normalised values.
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

// Where the Debian and Ubuntu package dataset-fashion-mnist puts its files.
inline constexpr const char* fashion_mnist_path = "/usr/share/datasets/fashion-mnist";

struct DataConfig {
  std::string kind = "synthetic";  // idx | synthetic
  std::string path;                // idx: directory of the four files; empty: fashion_mnist_path
  std::uint64_t seed = 1;          // synthetic: what is generated
};

// Rows as they are stored. pixels: rows * inputs bytes, row-major; label: [rows] in [0, classes).
struct ByteExamples {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> label;
  std::uint32_t rows = 0;
};

// Rows ready for use. x: rows * inputs floats, normalised; label: [rows] in [0, classes).
struct Examples {
  std::vector<float> x;
  std::vector<std::uint8_t> label;
  std::uint32_t rows = 0;

  // All of it, as a batch to evaluate. Valid as long as this object.
  Batch batch() const { return {x, label, rows}; }
};

struct DataSet {
  std::string name;  // "synthetic", or the directory's name: "fashion-mnist"
  std::uint32_t inputs = 0, classes = 0;
  ByteExamples train;
  Examples test;
  float mean = 0, scale = 1;  // of the bytes, over the training set; scale is 1 / deviation

  // One training row, normalised, into `inputs` floats. Requires: row < train.rows.
  void fill(std::uint32_t row, float* x) const;
};

// Takes well under a second for 60,000 images of 28 x 28.
// Errors: Errc::not_found (names the file and the package or command that brings it), Errc::corrupt (names
// the file, the offset and what is wrong there), Errc::io (names the file and the system's reason),
// Errc::usage (unknown kind).
Result<std::shared_ptr<const DataSet>> load_data(const DataConfig& config);

// Finishes a set whose name, sizes and training rows are in place: mean and scale, and the test rows
// normalised.
// Requires: train.rows >= 1, test.pixels of test.rows * inputs bytes.
std::shared_ptr<const DataSet> finish_data(DataSet data, ByteExamples test);

// Peer i of n: a part of the training set, drawn by a shuffle that depends on `seed` alone. Parts of one seed are
// disjoint and together the whole set; their sizes differ by at most one row. So all peers of a run need one seed
// here, whatever orders they draw in.
struct Shard {
  std::uint32_t index = 0, count = 1;
  std::uint64_t seed = 1;
};

// Endless batches over a shard: shuffled anew each epoch, the order fixed by (order_seed, shard). Every epoch
// visits each row of the shard exactly once; a batch may span two epochs, or more when it is larger than the
// shard.
class BatchSampler {
 public:
  // Requires: shard.index < shard.count <= train rows; batch >= 1. `data` is kept alive.
  BatchSampler(std::shared_ptr<const DataSet> data, Shard shard, std::uint32_t batch,
               std::uint64_t order_seed);

  // Valid until the next call.
  Batch next();
  // Rows of the shard.
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
