// SharedBuffers: each node's buffers, known to all (PROTOCOL.md 6.15).
//
// A buffer, in PyTorch's word, belongs to a model and is not learned by gradients, such as the running averages of
// batch normalisation. Each node says its own from time to time; of every node the newest counts. Nodes that hold the
// same set compute the same means from it, whichever way it came (runtime/training/outside/buffer_means.h).
//
// Thread: one owner, as Protocol. Memory: one frame a node, limits::buffers_all_bytes_max in all.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "gossip/links/core.h"

namespace rumor::gossip {

class SharedBuffers {
 public:
  // To each link: half of what limits::control_per_second allows.
  static constexpr std::uint64_t bytes_per_second = limits::control_per_second * limits::control_unit_bytes / 2;

  explicit SharedBuffers(Core& core) : core_(core) {}

  void admitted(const Link& link);
  void link_lost(const Link& link) { links_.erase(link.id); }
  // Closes the link for buffers that their node has not signed.
  void on_buffers(Link& link, const Buffers& message);
  // Our own, from now on. Requires: 0 < values.size() <= limits::buffers_bytes_max.
  void share(Bytes values, std::uint64_t progress);
  // Sends what is pending, as far as each link may have it now.
  void flush();
  TimePoint due() const { return due_; }
  // Whether the other end of the link has what we have, or is sent nothing more: an older version holds none.
  bool has_converged(const Link& link) const;

  // Without nodes that are put out.
  NodeBuffers all() const;

 private:
  struct Held {
    std::uint64_t number = 0, progress = 0;
    Hash256 hash;  // of the signed message
    std::shared_ptr<const Bytes> frame;
    std::size_t values_at = 0;  // in the frame
  };
  struct Pending {
    std::set<NodeId> nodes;  // whose buffers the link lacks
    TimePoint at;            // the next frame, no sooner
  };

  bool has_room_for(const Buffers& message) const;
  static Bytes values_of(const Held& held);
  void hold(const Buffers& message, const Hash256& hash, const Link* from);

  Core& core_;
  std::map<NodeId, Held> held_;
  std::size_t bytes_ = 0;  // of all frames held
  std::map<LinkId, Pending> links_;
  std::uint64_t number_ = 0;  // the greatest under which anybody has ours, of this life or an earlier one
  bool waiting_ = false;      // any link lacks any
  TimePoint due_ = never;
};

}  // namespace rumor::gossip
