#include "models/data/lanes.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::models {

Lanes::Lanes(const DataSet& data, const Shard& shard, std::uint32_t lanes, std::size_t state_floats)
    : order_(shard_stretches(data, shard)),
      lane_(lanes),
      at_(order_.size()),
      state_floats_(state_floats),
      state_(lanes * state_floats) {
  RUMOR_CHECK(lanes >= 1);
  for (const RowStretch& stretch : order_) rows_ += stretch.rows;
}

void Lanes::next(Prng& prng, std::span<std::uint32_t> rows) {
  RUMOR_CHECK(rows.size() == lane_.size());
  for (std::size_t i = 0; i < lane_.size(); ++i) {
    RowStretch& lane = lane_[i];
    if (lane.rows == 0) {
      if (at_ == order_.size()) {
        prng.shuffle(std::span(order_));
        at_ = 0;
      }
      lane = order_[at_++];
      std::fill_n(state_.data() + i * state_floats_, state_floats_, 0.0f);
    }
    rows[i] = lane.first++;
    --lane.rows;
  }
}

}  // namespace rumor::models
