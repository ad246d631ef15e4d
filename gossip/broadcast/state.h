// BroadcastState: what the parts of Broadcast share beyond Core.
//
// Thread: one owner, as Protocol.
#pragma once

#include <algorithm>

#include "gossip/broadcast/link_parts.h"
#include "gossip/broadcast/missing_keys.h"
#include "gossip/broadcast/origin_pace.h"
#include "gossip/broadcast/streams.h"

namespace rumor::gossip {

// When the have-set changed, and how large updates are.
class UpdateFlow {
 public:
  // The have-set has just changed.
  void changed(TimePoint now) {
    changed_at = now;
    if (changed_since == never) changed_since = now;
  }
  void count(std::size_t payload_bytes) {
    // The mean of the first ones, then a running one over about as many.
    counted_ = std::min(counted_ + 1, averaged);
    const std::uint64_t before = counted_ - 1;
    mean_bytes_ = (mean_bytes_ * before + payload_bytes + before) / counted_;
  }
  // The mean payload of an update, for windows and offers; 0 before the first.
  std::uint64_t mean_bytes() const { return mean_bytes_; }
  // Each update still changes the mean a lot.
  bool learns_bytes() const { return counted_ < averaged; }

  TimePoint changed_at = long_ago;  // the last change
  TimePoint changed_since = never;  // the first change that is not yet in a digest

 private:
  static constexpr std::uint64_t averaged = 16;
  std::uint64_t mean_bytes_ = 0, counted_ = 0;  // counted_: `averaged` at most
};

struct BroadcastState {
  explicit BroadcastState(Core& core_in)
      : core(core_in), streams(core_in), missing(core_in, streams), pace(core_in.options.gives_way) {}

  Core& core;
  Streams streams;
  MissingKeys missing;
  UpdateFlow flow;
  OriginPace pace;
};

}  // namespace rumor::gossip
