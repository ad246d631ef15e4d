// QueueProbe: how long DATA waits at the uplink before it leaves, by PINGs that wait with it
// (PROTOCOL.md 6.1.13).
//
// No driver is asked how full its queues are: what a frame in the lane of DATA takes to be answered, beyond one in the
// control lane sent with it, is all that waits for the uplink on this side, wherever it does. A processor that is late
// with everything delays both.
//
// Thread: one owner, as Protocol. Costs: four small frames a link each quarter of a second, while we publish.
#pragma once

#include "gossip/broadcast/state.h"
#include "gossip/overlay/overlay.h"

namespace rumor::gossip {

class QueueProbe {
 public:
  static constexpr Duration every = 250ms, quiet_after = 10s;

  QueueProbe(BroadcastState& state, Overlay& overlay)
      : core_(state.core), streams_(state.streams), pace_(state.pace), overlay_(overlay) {}

  // An own update was made: from now on it matters.
  void published();
  // True when it answers a probe.
  bool on_pong(Link& link, const Pong& pong);
  void tick();
  TimePoint due() const { return due_; }

 private:
  static constexpr int one = 1024;

  std::optional<Duration> wait_of(const Link& link) const;
  std::optional<Duration> median_wait();
  Duration others_gap();

  Core& core_;
  Streams& streams_;
  OriginPace& pace_;
  Overlay& overlay_;
  TimePoint due_ = never, published_at_ = long_ago, counted_at_ = long_ago;
  std::uint64_t counted_ = 0;  // updates received, of the last call
  std::uint64_t recent_ =
      0;  // updates, times `one`, and the time they came in: both halve in about two seconds
  Duration recent_time_{0};
};

}  // namespace rumor::gossip
