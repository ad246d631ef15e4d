// Pauses: the time for which the trainer was idle between two steps. In this time the protocol thread publishes the
// update and refreshes the view. Other work of that thread (a cut for a joiner, a checkpoint) makes the trainer wait;
// this class measures how long.
//
// Thread: one owner. Memory: one figure a second for ten seconds.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rumor::daemon {

class Pauses {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::steady_clock::duration;

  // `period`: the least time between the beginnings of two steps that the run file asks for; waiting for it is none.
  explicit Pauses(Span period) : period_(period) {}

  // A step, or an evaluation between two steps, ran from `begin` to `end`.
  void ran(Time begin, Time end) {
    if (due_ && begin > *due_) slot(end) = std::max(slot(end), begin - *due_);
    due_ = std::max(end, begin + period_);
  }

  // The longest of the last ten seconds.
  Span longest(Time now) {
    slot(now);
    return *std::max_element(worst_.begin(), worst_.end());
  }

 private:
  static constexpr std::size_t seconds = 10;

  // The span of the current second. Spans older than ten seconds are forgotten.
  Span& slot(Time at) {
    const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
    for (std::int64_t gone = std::max(last_ + 1, second - std::int64_t{seconds} + 1); gone <= second; ++gone)
      worst_[static_cast<std::size_t>(gone) % seconds] = Span{0};
    last_ = std::max(last_, second);
    return worst_[static_cast<std::size_t>(second) % seconds];
  }

  Span period_;
  std::optional<Time> due_;
  std::array<Span, seconds> worst_{};
  std::int64_t last_ = 0;
};

}  // namespace rumor::daemon
