#include "models/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/data/data_sources.h"
#include "models/kernels/kernels.h"
#include "models/tokenizer/tokenizer_json.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

namespace {

// The size of a block. A model may hold all activations of a block; this many tokens keep its products efficient.
constexpr std::uint32_t evaluation_tokens = 1024, evaluation_vectors = 256;

}  // namespace

Result<void> open_tokenizer_of(DataConfig& config) {
  if (config.tokens.empty() || config.tokenizer != nullptr) return {};
  if (config.kind != "text")
    return Error{Errc::usage, str("data.tokens makes tokens of a text, but data.kind is \"", config.kind,
                                  "\"; set data.kind = \"text\" or leave data.tokens out")};
  auto tokenizer = open_tokenizer(config.tokens);
  if (!tokenizer) return Error{tokenizer.error().code, str("data.tokens: ", tokenizer.error().text)};
  config.tokenizer = std::move(tokenizer).value();
  return {};
}

namespace {

Error unknown_kind(const std::string& kind) {
  return {Errc::usage, str("unknown data kind '", kind, "'; known: idx, cifar10, synthetic, text, tokens")};
}

// Square pictures in ten classes.
DataSet described_pictures(std::uint32_t channel_count, std::uint32_t edge) {
  DataSet data;
  data.inputs = channel_count * edge * edge;
  data.classes = 10;
  data.channels = channel_count;
  data.height = data.width = edge;
  return data;
}

}  // namespace

Result<DataSet> describe_data(const DataConfig& config) {
  if (config.kind == "synthetic") return described_pictures(1, 8);
  if (config.kind == "idx") return described_pictures(1, 28);
  if (config.kind == "cifar10") return described_pictures(3, 32);
  DataSet data;
  if (config.kind == "text") {
    RUMOR_CHECK(config.tokens.empty() || config.tokenizer != nullptr);
    data.vocabulary = config.tokenizer != nullptr ? config.tokenizer->vocabulary() : byte_vocabulary;
    return data;
  }
  if (config.kind != "tokens") return unknown_kind(config.kind);
  data.vocabulary = gpt2_vocabulary;
  return data;
}

Result<std::shared_ptr<const DataSet>> load_data(const DataConfig& config, std::uint32_t context) {
  if (config.kind == "synthetic") return make_synthetic(config.seed);
  if (config.kind == "idx") return load_idx_data(config.path.empty() ? fashion_mnist_path : config.path);
  if (config.kind == "cifar10") return load_cifar10_data(config.path);
  if (config.kind == "text") return load_text_data(config, context);
  if (config.kind == "tokens") return load_token_data(config.path, context);
  return unknown_kind(config.kind);
}

std::uint32_t DataSet::train_rows() const {
  return vocabulary > 0 ? static_cast<std::uint32_t>((train_tokens.size() - 1) / context) : train.rows;
}

void DataSet::describe(ModelConfig& model) const {
  model.inputs = inputs;
  model.classes = classes;
  model.channels = channels;
  model.height = height;
  model.width = width;
  if (model.vocabulary < vocabulary || model.vocabulary - vocabulary > vocabulary / 16) model.vocabulary = vocabulary;
}

Batch DataSet::windows_of(const TokenArray& text, std::span<const std::uint32_t> rows, BatchMemory& memory) const {
  const std::size_t wide = std::size_t{context} + 1;
  memory.tokens.resize(rows.size() * wide);
  for (std::size_t i = 0; i < rows.size(); ++i)
    text.copy(std::uint64_t{rows[i]} * context, std::span(memory.tokens).subspan(i * wide, wide));
  return {.rows = static_cast<std::uint32_t>(rows.size()), .tokens = memory.tokens};
}

Batch DataSet::train_batch(std::span<const std::uint32_t> rows, BatchMemory& memory, std::uint32_t size) const {
  const auto count = static_cast<std::uint32_t>(rows.size());
  if (vocabulary > 0) return windows_of(train_tokens, rows, memory);
  const bool shrinks = size != 0 && size != height;
  LargeVector<float>& whole = shrinks ? memory.whole : memory.x;
  whole.resize(std::size_t{count} * inputs);
  memory.label.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    fill(rows[i], whole.data() + std::size_t{i} * inputs);
    memory.label[i] = train.label[rows[i]];
  }
  if (shrinks) shrink(count, size, memory);
  return {.x = memory.x, .label = memory.label, .rows = count};
}

void DataSet::shrink(std::uint32_t count, std::uint32_t size, BatchMemory& memory) const {
  RUMOR_CHECK(height == width && channels > 0);
  if (!memory.area_mean || memory.area_mean->to() != size) memory.area_mean.emplace(height, size);
  const std::size_t planes = std::size_t{count} * channels;
  memory.x.resize(planes * size * size);
  memory.area_mean->planes(planes, memory.whole.data(), memory.x.data(), memory.scratch);
}

Batch DataSet::test_batch(std::uint32_t first, std::uint32_t count, BatchMemory& memory) const {
  RUMOR_CHECK(first <= test_rows() && count <= test_rows() - first);
  if (vocabulary > 0) {
    std::vector<std::uint32_t> rows(count);
    for (std::uint32_t i = 0; i < count; ++i)
      rows[i] = static_cast<std::uint32_t>(std::uint64_t{first + i} * held_out_rows() / test_windows);
    return held_out_batch(rows, memory);
  }
  return {.x = std::span(test.x).subspan(std::size_t{first} * inputs, std::size_t{count} * inputs),
          .label = std::span(test.label).subspan(first, count),
          .rows = count};
}

std::uint32_t DataSet::held_out_rows() const {
  return static_cast<std::uint32_t>((test_tokens.size() - 1) / context);
}

Batch DataSet::held_out_batch(std::span<const std::uint32_t> rows, BatchMemory& memory) const {
  return windows_of(test_tokens, rows, memory);
}

std::uint32_t DataSet::evaluation_block() const {
  return vocabulary > 0 ? std::max(1u, evaluation_tokens / context) : evaluation_vectors;
}

void DataSet::fill(std::uint32_t row, float* x) const {
  RUMOR_CHECK(row < train.rows);
  kernels().normalise(inputs, train.pixels.data() + std::size_t{row} * inputs, mean, scale, x);
}

std::shared_ptr<const DataSet> finish_data(DataSet data, ByteExamples test) {
  RUMOR_CHECK(data.train.rows >= 1);
  RUMOR_CHECK(data.train.pixels.size() == std::size_t{data.train.rows} * data.inputs);
  RUMOR_CHECK(test.pixels.size() == std::size_t{test.rows} * data.inputs);
  // Bytes counted, not summed: exact, and 256 products instead of one per pixel.
  std::uint64_t count[256] = {};
  for (const std::uint8_t byte : data.train.pixels) ++count[byte];
  std::uint64_t sum = 0, square_sum = 0;
  for (std::uint64_t value = 0; value < 256; ++value) {
    sum += value * count[value];
    square_sum += value * value * count[value];
  }
  const auto pixels = static_cast<double>(data.train.pixels.size());
  const double mean = static_cast<double>(sum) / pixels;
  const double variance = static_cast<double>(square_sum) / pixels - mean * mean;
  data.mean = static_cast<float>(mean);
  if (variance > 1e-6) data.scale = static_cast<float>(1 / std::sqrt(variance));  // else all bytes are equal

  data.test.rows = test.rows;
  data.test.label = std::move(test.label);
  data.test.x.resize(test.pixels.size());
  kernels().normalise(static_cast<long>(test.pixels.size()), test.pixels.data(), data.mean, data.scale,
                      data.test.x.data());
  return std::make_shared<const DataSet>(std::move(data));
}

}  // namespace rumor::models
