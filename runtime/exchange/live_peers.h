// LivePeers: who is training with us now, judged by what they do, not by who is connected to whom.
//
// A peer is live while updates of it keep arriving: the last one within `window` of now. In a partial mesh
// most peers are not neighbours, so connections cannot tell. The window adapts to the slowest of them: ten
// times the longest usual gap between two updates of one peer, at least two seconds.
//
// Thread: one owner.
#pragma once

#include <map>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor {

class LivePeers {
 public:
  // An update of `peer` arrived by spreading (not by catching up on history).
  void heard(const NodeId& peer, TimePoint now);
  // The peer said goodbye or was cut off.
  void forget(const NodeId& peer) { peers_.erase(peer); }
  // Drops those silent for longer than the window; returns them.
  std::vector<NodeId> expire(TimePoint now);
  // When expire() would drop the first of them, if nobody is heard until then.
  TimePoint next_expiry() const;
  // In NodeId order.
  std::vector<NodeId> list() const;
  std::size_t count() const { return peers_.size(); }

 private:
  struct Peer {
    TimePoint last;
    Duration gap{0};  // moving average
  };
  Duration window() const;
  std::map<NodeId, Peer> peers_;
};

}  // namespace rumor
