// LocalClock: the time that one simulated host reads. It may jump, run fast or slow, or stop.
//
// Thread: plain values.
#pragma once

#include <cstdint>

#include "runtime/base/time.h"

namespace rumor::sim {

class LocalClock {
 public:
  // Counts from zero at `now`, as that of a process just started.
  void restart(TimePoint now) {
    world_ = now;
    local_ = TimePoint{};
  }
  TimePoint read(TimePoint now) const {
    return local_ + Duration((now - world_).count() * millionths_ / 1'000'000);
  }
  // The world's time at which it will show `local`; never while it is stopped.
  TimePoint when(TimePoint local, TimePoint now) const {
    if (local == never || millionths_ == 0) return never;
    const TimePoint shown = read(now);
    if (local <= shown) return now;
    return now + Duration(((local - shown).count() * 1'000'000 + millionths_ - 1) / millionths_);
  }

  void jump(Duration by, TimePoint now) {
    restart_from(now);
    local_ += by;
  }
  // 1'000'000 is true time, 0 is stopped.
  void run_at(std::int64_t millionths, TimePoint now) {
    restart_from(now);
    millionths_ = millionths;
  }

 private:
  void restart_from(TimePoint now) {
    local_ = read(now);
    world_ = now;
  }

  TimePoint world_{}, local_{};
  std::int64_t millionths_ = 1'000'000;
};

}  // namespace rumor::sim
