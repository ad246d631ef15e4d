#include "models/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "models/data_sources.h"
#include "models/kernels.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::shared_ptr<const DataSet>> load_data(const DataConfig& config) {
  if (config.kind == "synthetic") return make_synthetic(config.seed);
  if (config.kind == "idx") return load_idx_data(config.path.empty() ? fashion_mnist_path : config.path);
  return Error{Errc::usage, str("unknown data kind '", config.kind, "'; known: idx, synthetic")};
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

BatchSampler::BatchSampler(std::shared_ptr<const DataSet> data, Shard shard, std::uint32_t batch,
                           std::uint64_t order_seed)
    : data_(std::move(data)), batch_(batch), prng_(Prng::named(order_seed, "batches", shard.index)) {
  const std::uint32_t rows = data_->train.rows;
  RUMOR_CHECK(batch >= 1);
  RUMOR_CHECK(shard.index < shard.count);
  RUMOR_CHECK(shard.count <= rows);
  std::vector<std::uint32_t> all(rows);
  std::iota(all.begin(), all.end(), 0u);
  Prng::named(shard.seed, "shards").shuffle(std::span(all));
  const auto edge = [&](std::uint64_t i) { return static_cast<std::ptrdiff_t>(rows * i / shard.count); };
  order_.assign(all.begin() + edge(shard.index), all.begin() + edge(shard.index + std::uint64_t{1}));
  at_ = order_.size();
  x_.resize(std::size_t{batch_} * data_->inputs);
  label_.resize(batch_);
}

Batch BatchSampler::next() {
  for (std::uint32_t i = 0; i < batch_; ++i) {
    if (at_ == order_.size()) {
      prng_.shuffle(std::span(order_));
      at_ = 0;
    }
    const std::uint32_t row = order_[at_++];
    data_->fill(row, x_.data() + std::size_t{i} * data_->inputs);
    label_[i] = data_->train.label[row];
  }
  return {x_, label_, batch_};
}

}  // namespace rumor::models
