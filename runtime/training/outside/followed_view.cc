#include "runtime/training/outside/followed_view.h"

#include <cmath>

#include "runtime/base/memory_bytes.h"

namespace rumor {

FollowedView::FollowedView(int grid_bits, std::uint64_t entries_max)
    : grid_bits_(grid_bits), entries_max_(entries_max) {}

float FollowedView::unit() const { return std::ldexp(1.0f, -grid_bits_); }

void FollowedView::changed_at(const compress::SharedUpdate& update) {
  if (everywhere_) return;
  entries_ += update->index.size();
  changed_.push_back(update);
  if (entries_ > entries_max_) changed_everywhere();
}

void FollowedView::changed_everywhere() {
  seen();
  everywhere_ = true;
}

void FollowedView::seen() {
  everywhere_ = false;
  changed_.clear();
  entries_ = 0;
}

void FollowedView::follow(Replica& replica, Parallel& parallel) {
  for (const Taken& taken : replica.recent()) changed_at(taken.update);
  if (!replica.refresh(parallel)) changed_everywhere();
  weights_ = replica.weights();
}

void FollowedView::outlive(Replica& replica) {
  kept_ = replica.release();
  weights_ = kept_;
}

std::size_t FollowedView::weight_bytes() const { return capacity_bytes(kept_); }

std::size_t FollowedView::entry_bytes() const {
  std::size_t bytes = capacity_bytes(changed_);
  for (const compress::SharedUpdate& update : changed_) bytes += compress::part_bytes(update);
  return bytes;
}

}  // namespace rumor
