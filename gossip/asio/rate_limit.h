// RateLimit: how many bytes may pass in one direction over all links together.
//
// Whoever is about to move bytes looks at free_at(): later than now, he waits until then and looks again;
// else he moves up to quantum() bytes and books them. So many who wait take turns. What a late timer has cost
// is made up for, up to `burst`; over any time t at most rate * (t + burst) plus one quantum passes.
//
// Thread: one owner. No clock: time comes in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gossip/contract/events.h"
#include "runtime/base/time.h"

namespace rumor::net {

class RateLimit {
 public:
  static constexpr Duration burst = 20ms;

  // 0: no limit.
  explicit RateLimit(std::uint64_t bytes_per_second = 0) : rate_(bytes_per_second) {}

  bool limited() const { return rate_ != 0; }
  std::uint64_t bytes_per_second() const { return rate_; }
  TimePoint free_at() const { return free_at_; }
  // Bytes to move at a time: some milliseconds' worth.
  std::size_t quantum() const {
    if (rate_ == 0) return quantum_max;
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(rate_ / 200, quantum_min, quantum_max));
  }
  void book(std::size_t bytes, TimePoint now) {
    if (rate_ == 0) return;
    const std::uint64_t cost_us = (std::uint64_t{bytes} * 1'000'000 + rate_ - 1) / rate_;
    free_at_ = std::max(free_at_, now - burst) + Duration(static_cast<std::int64_t>(cost_us));
  }

 private:
  static constexpr std::size_t quantum_min = 2 << 10, quantum_max = 64 << 10;
  std::uint64_t rate_;
  TimePoint free_at_{};
};

// The limits of one peer.
struct RateLimits {
  RateLimit up, down;
  gossip::BacklogMarks marks = {};  // of each of its links
};

}  // namespace rumor::net
