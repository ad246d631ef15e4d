// Incoming: the node's store of updates, as the protocol sees it. It accepts updates of other peers, takes them back or
// revokes them, and replaces the replica by a snapshot; trainer and exchange hear of each change.
//
// The port of gossip has no time. The protocol calls accept() only within a handler of the node, so the time is that of
// the turn (NodeCore::turn).
//
// Thread: one owner, as Node.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/node/node_core.h"
#include "runtime/replica/held_updates.h"

namespace rumor {

class Incoming final : public HeldUpdates {
 public:
  // Starts from the weights in the options, or from the trainer's.
  explicit Incoming(NodeCore& core);

  Result<gossip::Accepted> accept(const gossip::StoredUpdate& update) override;

  // Changes of other peers since the last call, in order of arrival. Empty when the trainer does not ask for them, or
  // when they had more entries than the model has parameters.
  std::vector<compress::SparseUpdate> take_changes();
  // Says once a minute at most that the log has dropped updates which members still lack.
  void warn_of_dropped(Turn& turn);

 private:
  Result<void> install(ReplicaState state) override;
  void keep_change(compress::SparseUpdate change);

  NodeCore& core_;
  std::vector<compress::SparseUpdate> changes_;
  std::uint64_t changes_entries_ = 0;
  std::uint64_t dropped_told_ = 0;  // updates that the last warning has counted
  TimePoint next_warning_{};
};

}  // namespace rumor
