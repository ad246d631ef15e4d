// LivePeers: the peers that are training now. A peer is live while its updates keep arriving: the last one within
// `window` of now. Connections cannot tell, since most peers of a partial mesh are not neighbours.
//
// The window adapts to the slowest peer: ten times the longest usual gap between two updates of one peer, at least two
// seconds.
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
  // Drops the peers that were silent for longer than the window, and returns them.
  std::vector<NodeId> expire(TimePoint now);
  // When expire() would drop the first peer, if no update arrives until then.
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
