// Time as a value. There is no now() here on purpose: the core gets the time as an argument and cannot read a clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace rumor {

using Duration = std::chrono::microseconds;

// The clock of one node: counts from that node's start, in both worlds (virtual and real).
struct NodeClock {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = Duration;
  using time_point = std::chrono::time_point<NodeClock>;
  static constexpr bool is_steady = true;
};
using TimePoint = NodeClock::time_point;

inline constexpr TimePoint never = TimePoint::max();
// A time before the start by more than any interval of a repeated action.
inline constexpr TimePoint long_ago{-std::chrono::hours(1)};

constexpr double to_seconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-6;
}
constexpr Duration from_seconds(double s) {
  return Duration(static_cast<std::int64_t>(s * 1e6));
}

using namespace std::chrono_literals;

}  // namespace rumor
