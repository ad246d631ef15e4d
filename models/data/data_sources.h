// Sources of data sets: one function per kind of DataConfig. load_data() is the public function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"
#include "models/data/token_array.h"
#include "runtime/base/result.h"
#include "runtime/base/text.h"

namespace rumor::models {

// The error for a damaged data file, with the place of the damage.
inline Error damaged(const std::string& file, std::size_t offset, const std::string& what) {
  return Error{Errc::corrupt, str(file, ", offset ", offset, ": ", what)};
}

// The four files of an MNIST-style set: {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or with .gz.
// Errors: as load_data.
Result<std::shared_ptr<const DataSet>> load_idx_data(const std::string& directory);

// The binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin. Errors: as
// load_data.
Result<std::shared_ptr<const DataSet>> load_cifar10_data(const std::string& directory);

// 10 classes, 64 inputs, 8,000 training and 2,000 test rows, from the seed alone, in milliseconds.
// Each class is four clouds around random centres that overlap those of other classes, so that no straight
// cut separates them and the best possible accuracy is below 1. After 120,000 samples of plain SGD an MLP
// with two hidden layers of 128 is right on about 93 % of the test rows, a linear model on about 77 %.
std::shared_ptr<const DataSet> make_synthetic(std::uint64_t seed);

// Text: a plain file (mapped), a gzip file, a folder of such files in the order of their names, or the name of a
// corpus; empty: bible-kjv-text. Without a tokenizer its bytes are the tokens, and the vocabulary is 256. The last
// tenth is held out, at most held_out_tokens_max of it. Errors: as load_data.
Result<std::shared_ptr<const DataSet>> load_text_data(const DataConfig& config, std::uint32_t context);

// One file of a text.
struct TextFile {
  std::string name;                   // for errors
  std::shared_ptr<const void> owner;  // keeps the bytes alive
  BytesView bytes;
};

// The tokens of the files, one after another, in words of 16 bits or, where the vocabulary is larger, 32. Nothing is
// put between two files. Memory: four bytes for each token of the largest file, besides the result. Errors:
// Errc::corrupt (names the file and the place that is no UTF-8), Errc::limit.
Result<TokenArray> encode_texts(std::vector<TextFile> files, const std::shared_ptr<const Tokenizer>& tokenizer,
                                const EncodingProgress& progress);

// GPT-2 tokens, 16 bits each, little-endian (mapped), vocabulary 50,257, in either of two layouts:
//   nanoGPT  tokens from the first byte to the last
//   llm.c    256 words of 32 bits: magic 20240520, version 1, number of tokens, zeros; then the tokens
// `path`: a folder with *.bin files, those with "train" in their name for training and those with "val" for
// evaluation, in the order of their names; or one file, of which the last part is held out as of a text.
// Errors: as load_data.
Result<std::shared_ptr<const DataSet>> load_token_data(const std::string& path, std::uint32_t context);

// The King James Bible as the Debian package bible-kjv-text has it in /usr/lib/bible.data: cut into pieces of
// 64 KB, each packed as compress(1) does (LZW, 9 to 16 bits). One verse a line: "Ge1:1 In the beginning ...".
// `file` is for the error text. Errors: Errc::corrupt, naming file and offset.
Result<Bytes> unpack_bible(BytesView bytes, const std::string& file);

// Plain files directly in a folder, but for hidden ones, in the order of their names. Errors: Errc::io.
Result<std::vector<std::string>> files_in(const std::string& directory);
// The last name of a path, with or without a slash at its end.
std::string last_name(const std::string& path);

inline constexpr std::uint32_t byte_vocabulary = 256;
// The most tokens of a text that are held out, and the number that an evaluation looks at. They give the loss to
// within about 0.01 nats; more would cost more time than they are worth.
inline constexpr std::uint64_t held_out_tokens_max = 1 << 20, evaluated_tokens_max = 1 << 17;

// Cuts the held-out part off the end of `all`: a tenth of it, at most held_out_tokens_max, at least one row.
// Errors: Errc::usage when there are fewer tokens than two rows.
Result<std::shared_ptr<const DataSet>> hold_out(std::string name, const TokenArray& all,
                                                std::uint32_t vocabulary, std::uint32_t context);
// A set of windows. Errors: Errc::usage when either part is shorter than a row, Errc::limit for too many
// rows.
Result<std::shared_ptr<const DataSet>> make_windows(std::string name, TokenArray train, TokenArray test,
                                                    std::uint32_t vocabulary, std::uint32_t context);

}  // namespace rumor::models
