// Which rows come next: at random, or in lanes.
#include <utility>

#include "models/data/lanes.h"
#include "runtime/base/check.h"

namespace rumor::models {

BatchSampler::BatchSampler(std::shared_ptr<const DataSet> data, Shard shard, std::uint32_t batch,
                           std::uint64_t order_seed, std::size_t state_floats)
    : data_(std::move(data)), batch_(batch), prng_(Prng::named(order_seed, "batches", shard.index)) {
  RUMOR_CHECK(batch >= 1);
  if (state_floats > 0) {
    lanes_ = std::make_unique<Lanes>(*data_, shard, batch, state_floats);
  } else {
    order_ = shard_rows(*data_, shard);
    at_ = order_.size();
  }
}

BatchSampler::BatchSampler(BatchSampler&&) noexcept = default;
BatchSampler& BatchSampler::operator=(BatchSampler&&) noexcept = default;
BatchSampler::~BatchSampler() = default;

Batch BatchSampler::next(std::uint32_t rows, std::uint32_t size) {
  Batch batch = data_->train_batch(next_rows(rows), memory_, size);
  if (lanes_) batch.state = lanes_->state();
  return batch;
}

std::span<const std::uint32_t> BatchSampler::next_rows(std::uint32_t rows) {
  drawn_.resize(rows);
  if (lanes_) {
    RUMOR_CHECK(rows == batch_);
    lanes_->next(prng_, drawn_);
    return drawn_;
  }
  for (std::uint32_t& row : drawn_) {
    if (at_ == order_.size()) {
      prng_.shuffle(std::span(order_));
      at_ = 0;
    }
    row = order_[at_++];
  }
  return drawn_;
}

std::uint32_t BatchSampler::rows() const {
  return lanes_ ? lanes_->rows() : static_cast<std::uint32_t>(order_.size());
}

}  // namespace rumor::models
