// QueueProbe: measures how long DATA waits at the uplink before it leaves (PROTOCOL.md 6.1.13).
//
// It sends two PINGs at a time, one in the lane of DATA and one in the control lane. The first is answered later by
// the time that DATA waits for the uplink, in whatever queue on this side. No driver is asked how full its queues are,
// and a slow processor delays both PINGs.
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

  // An own update was made: probing begins, or goes on.
  void published();
  // Returns true when it answers a probe.
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
  std::uint64_t counted_ = 0;  // updates received, by the last call
  // Updates, times `one`, and the time in which they came: both halve in about two seconds.
  std::uint64_t recent_ = 0;
  Duration recent_time_{0};
};

}  // namespace rumor::gossip
