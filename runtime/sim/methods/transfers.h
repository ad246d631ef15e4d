// Transfers: when a message that a baseline sends arrives. Its hosts have the uplinks, downlinks and latencies of the
// run's network; nothing is lost, and what is sent first arrives first.
//
// Baselines send whole models and no protocol, so a transfer is a formula here and no event (world/fabric.h):
//
//   wait for the uplink + bytes / up + latency + jitter, then wait for the downlink + bytes / down
//
// Thread: one owner. Integers only, one seeded generator: the same seed gives the same times everywhere.
#pragma once

#include <vector>

#include "runtime/base/prng.h"
#include "runtime/sim/world/network.h"

namespace rumor::sim {

class Transfers {
 public:
  Transfers(const NetworkModel& model, std::size_t hosts, std::uint64_t seed);

  // When what `from` sends at `now` has arrived at `to`. The downlink is kept for it from now on.
  TimePoint deliver(std::size_t from, std::size_t to, std::size_t bytes, TimePoint now);
  // When all that the host has sent so far has left.
  TimePoint uplink_free(std::size_t host) const { return up_free_[host]; }

 private:
  NetworkModel model_;
  std::size_t hosts_;
  Prng prng_;
  std::vector<Duration> latency_;  // of each ordered pair, one way
  std::vector<TimePoint> up_free_, down_free_;
};

}  // namespace rumor::sim
