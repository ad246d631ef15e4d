// Data sets, their shards, and batches from them.
//
// Kinds:
//   idx        the four files of MNIST and its relatives, plain or gzip (models/data/idx.h)
//   cifar10    CIFAR-10, binary version (models/data/data_cifar10.cc)
//   synthetic  a generated classification task that needs no files (models/data/synthetic.cc)
//   text       a file, a folder of files, or a corpus out of a Debian package, as bytes or, with data.tokens, as the
//              tokens of a tokenizer (models/data/data_text.cc, models/data/encoded_text.cc)
//   tokens     GPT-2 token files, nanoGPT's and llm.c's (models/data/data_tokens.cc)
//
// There are two kinds of rows, and only a DataSet knows its kind. Other code asks it for the number of rows and for
// batches; describe() informs the model.
// - Vectors (idx, cifar10, synthetic). Values stay bytes: the training set is stored as it came (Fashion-MNIST: 47 MB
//   instead of 188). A batch is normalised when it is sampled, x = (byte - mean) * scale, with the training set's mean
//   and 1 / deviation. The sums behind these are exact integers, so every peer computes with the same values.
// - Windows of a long text (text, tokens). Row r is the tokens r * context to (r + 1) * context. The last token is only
//   predicted, so rows of one context share no other token, and shards are disjoint. The text stays in memory or mapped
//   from its file (models/data/token_array.h).
//
// Thread: a DataSet is immutable once loaded and may be shared; a BatchSampler has one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/data/token_array.h"
#include "models/families/model.h"
#include "models/kernels/area_mean.h"
#include "models/tokenizer/tokenizer.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/prng.h"
#include "runtime/base/result.h"

namespace rumor::models {

// Where the Debian and Ubuntu package dataset-fashion-mnist puts its files.
inline constexpr const char* fashion_mnist_path = "/usr/share/datasets/fashion-mnist";

// Called now and then while a text becomes tokens, which may take a minute.
using EncodingProgress = std::function<void(std::uint64_t bytes, std::uint64_t of_bytes)>;

struct DataConfig {
  std::string kind = "synthetic";  // idx | cifar10 | synthetic | text | tokens
  // idx: folder of the four files; empty: fashion_mnist_path.
  // cifar10: folder of the six files.
  // text: a file, a folder of files, or one of the corpora "bible-kjv-text" (also when empty) and
  // "dict-gcide". tokens: a file, or a folder of files whose names say train and val.
  std::string path;
  std::uint64_t seed = 1;  // synthetic: seed of the generated data
  std::uint32_t skew = 0;  // pieces of a shard, each of one class or passage (Shard); 0: shards are alike
  // text: the tokenizer.json whose tokens the text becomes; empty: bytes. Each peer has its own path; a hash of the
  // tokenizer goes into the run id.
  std::string tokens;
  std::shared_ptr<const Tokenizer> tokenizer;  // that of `tokens`, once open_tokenizer_of() has read it
  EncodingProgress progress;                   // empty: nobody is told
};

// Rows as they are stored. pixels: rows * inputs bytes, row-major; label: [rows] in [0, classes).
struct ByteExamples {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> label;
  std::uint32_t rows = 0;
};

// Rows ready for use. x: rows * inputs floats, normalised; label: [rows] in [0, classes).
struct Examples {
  LargeVector<float> x;
  std::vector<std::uint8_t> label;
  std::uint32_t rows = 0;

  // All rows as one batch to evaluate. Valid as long as this object.
  Batch batch() const { return {x, label, rows}; }
};

// Memory of a batch, reused from batch to batch.
struct BatchMemory {
  LargeVector<float> x;
  std::vector<std::uint8_t> label;
  std::vector<Token> tokens;
  LargeVector<float> whole, scratch;  // for smaller pictures
  std::optional<AreaMean> area_mean;  // the same
};

struct DataSet {
  std::string name;  // "synthetic", or the name of the folder or file: "fashion-mnist"

  // ---- vectors ----
  std::uint32_t inputs = 0, classes = 0;
  std::uint32_t channels = 0, height = 0, width = 0;  // inputs = channels * height * width; 0: not pictures
  ByteExamples train;
  Examples test;
  float mean = 0, scale = 1;  // of the bytes, over the training set; scale is 1 / deviation

  // ---- windows of a text ----
  std::uint32_t vocabulary = 0, context = 0;  // 0: the rows are vectors
  TokenArray train_tokens, test_tokens;
  std::uint32_t test_windows = 0;  // how many rows are evaluated, spread evenly over test_tokens

  std::uint32_t train_rows() const;
  std::uint32_t test_rows() const { return vocabulary > 0 ? test_windows : test.rows; }
  // Fills in the facts of its rows that a model needs. A vocabulary in `model` that is larger by at most a sixteenth
  // stays: tables of weights are often padded.
  void describe(ModelConfig& model) const;

  // These training rows, in this order. Valid until `memory` changes. `size`: pictures are shrunk to so many pixels a
  // side; 0: they stay. Requires: each row below train_rows(); without square pictures, size 0.
  Batch train_batch(std::span<const std::uint32_t> rows, BatchMemory& memory, std::uint32_t size = 0) const;
  // Test rows first, first + 1, ... Valid until `memory` changes. Requires: first + count <= test_rows().
  Batch test_batch(std::uint32_t first, std::uint32_t count, BatchMemory& memory) const;
  // Rows of the held-out text, some of which are the test rows: row r is its tokens from r * context on. Requires: a
  // text.
  std::uint32_t held_out_rows() const;
  // These rows of the held-out text, in this order. Valid until `memory` changes.
  Batch held_out_batch(std::span<const std::uint32_t> rows, BatchMemory& memory) const;
  // How many rows an evaluation may pass to a model at once, so that its activations stay small.
  std::uint32_t evaluation_block() const;

  // One training row of vectors, normalised, into `inputs` floats. Requires: row < train.rows.
  void fill(std::uint32_t row, float* x) const;

 private:
  Batch windows_of(const TokenArray& text, std::span<const std::uint32_t> rows, BatchMemory& memory) const;
  // memory.x: the pictures of memory.whole, shrunk.
  void shrink(std::uint32_t count, std::uint32_t size, BatchMemory& memory) const;
};

// Reads the tokenizer that config.tokens names, if it names one and has none yet. Errors: those of open_tokenizer
// (models/tokenizer/tokenizer_json.h); Errc::usage where the kind is not text.
Result<void> open_tokenizer_of(DataConfig& config);

// `context`: tokens of a row, for text and tokens; other kinds ignore it. Takes well under a second for 60,000 images
// of 28 x 28. Token files are read once, to check that every token is below the vocabulary. A text becomes tokens at
// one or two megabytes a second. Requires: open_tokenizer_of(config) was called.
// Errors: Errc::not_found (names the file and the package or command that provides it), Errc::corrupt (names the file,
// the offset and the damage), Errc::io (names the file and the system's reason), Errc::usage (unknown kind; a text
// shorter than a row).
Result<std::shared_ptr<const DataSet>> load_data(const DataConfig& config, std::uint32_t context = 0);

// The facts of its rows that a model needs (DataSet::describe), without any rows: for a peer that does not train. A set
// in IDX files is taken to be grey pictures of 28 x 28 in ten classes, as MNIST and its relatives are. Errors:
// Errc::usage (unknown kind). Requires: open_tokenizer_of(config) was called.
Result<DataSet> describe_data(const DataConfig& config);

// Finishes a set of vectors whose name, sizes and training rows are in place: mean and scale, and the test
// rows normalised. Requires: train.rows >= 1, test.pixels of test.rows * inputs bytes.
std::shared_ptr<const DataSet> finish_data(DataSet data, ByteExamples test);

// Peer i of n: a part of the training set that depends on `seed` alone. Parts of one seed are disjoint and together the
// whole set (except the end of a text beyond its last whole row). So all peers of a run need one seed and one skew
// here, whatever their sampling orders.
//
// skew = 0: parts by a shuffle; sizes differ by at most one row.
// skew = K: each peer sees few classes. The rows, sorted by label, are cut into K * n pieces of equal size, and each
// peer gets K pieces. A text has no labels and is cut in its own order, so that each peer has K passages. This is the
// split of McMahan et al. 2017 ("Communication-Efficient Learning ..."), the hard case that other papers report. It is
// preferred to sampling every peer's classes from a Dirichlet distribution (Hsu et al. 2019): parts stay equally large,
// so an epoch is as long for every peer, and it uses integers only, so it is equal on every machine.
struct Shard {
  std::uint32_t index = 0, count = 1;
  std::uint64_t seed = 1;
  std::uint32_t skew = 0;
};

// Errors: Errc::usage: no such shard, or the set has fewer rows than pieces.
Result<void> check_shard(const DataSet& data, const Shard& shard);
// The shard's rows, in no order that means anything. Requires: check_shard().
std::vector<std::uint32_t> shard_rows(const DataSet& data, const Shard& shard);

// Rows that follow one another in a text.
struct RowStretch {
  std::uint32_t first = 0, rows = 0;
  bool operator==(const RowStretch&) const = default;
};
// The shard as stretches of about stretch_rows rows, shorter where a peer would have fewer than sixteen. skew = 0:
// stretches from all over the text; skew = K: the K passages of shard_rows(), cut. Parts of one seed are disjoint and
// together the whole set, as those of shard_rows(). Requires: a text; check_shard().
inline constexpr std::uint32_t stretch_rows = 64;
std::vector<RowStretch> shard_stretches(const DataSet& data, const Shard& shard);

class Lanes;  // models/data/lanes.h

// Endless batches over a shard, the order fixed by (order_seed, shard). Without a state, rows are shuffled anew each
// epoch: every epoch visits each row of the shard exactly once, and a batch may span two epochs, or more when it is
// larger than the shard. With a state, rows come in lanes.
class BatchSampler {
 public:
  // state_floats: Model::state_floats(); above 0 batches have a state, and the data must be a text. Requires:
  // check_shard(); batch >= 1. `data` is kept alive.
  BatchSampler(std::shared_ptr<const DataSet> data, Shard shard, std::uint32_t batch, std::uint64_t order_seed,
               std::size_t state_floats = 0);
  BatchSampler(BatchSampler&&) noexcept;
  BatchSampler& operator=(BatchSampler&&) noexcept;
  ~BatchSampler();

  // Valid until the next call of either. Give each batch to one loss_and_gradient(), since its state moves on there.
  Batch next() { return next(batch_); }
  // The same with so many rows. What comes later does not depend on how the rows before were divided. Requires:
  // rows >= 1; with a state, as many as a batch. `size`: as DataSet::train_batch() has it.
  Batch next(std::uint32_t rows, std::uint32_t size = 0);
  // The numbers of the rows of the next batch alone, for DataSet::train_batch. Valid until the next call of either.
  std::span<const std::uint32_t> next_rows() { return next_rows(batch_); }
  std::span<const std::uint32_t> next_rows(std::uint32_t rows);
  // Rows of the shard.
  std::uint32_t rows() const;

 private:
  std::shared_ptr<const DataSet> data_;
  std::uint32_t batch_;
  Prng prng_;
  std::vector<std::uint32_t> order_;  // of the shard's rows, in this epoch
  std::vector<std::uint32_t> drawn_;  // rows of the next batch
  std::size_t at_ = 0;
  std::unique_ptr<Lanes> lanes_;  // with a state; order_ is then empty
  BatchMemory memory_;
};

}  // namespace rumor::models
