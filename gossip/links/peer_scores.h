// PeerScores: this node's own experience of others, which it keeps to itself (PROTOCOL.md 6.12). Scores decide which
// nodes to ask and to link to, never what is valid: that must be the same everywhere.
//
// Thread: one owner, as Protocol. Memory: scores_max nodes; the ones nearest to zero go first. Whole numbers,
// so that simulations are the same everywhere.
#pragma once

#include <cstdint>
#include <map>

#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

class PeerScores {
 public:
  static constexpr Duration forger_banned = 1h, idler_banned = 10min, decay_every = 1min;
  static constexpr std::size_t scores_max = 4'096;
  // In hundredths of a point.
  static constexpr std::int64_t delivered = 10, delivered_max = 1'000, promise_broken = -100;
  static constexpr std::int64_t provides_from = -1'000, linked_from = -3'000;

  // The node was the first to bring an update that it had announced.
  void has_delivered(const NodeId& node, TimePoint now);
  // The node did not give an update that it had announced. True: that was once too often, and it is banned.
  bool has_broken_promise(const NodeId& node, TimePoint now);
  // The node sent a bad signature or a malformed frame: inside TLS that is no accident.
  void has_forged(const NodeId& node, TimePoint now);
  // The node asks for more work, or names more, than any honest peer would.
  void has_overburdened(const NodeId& node, TimePoint now);

  // In hundredths of a point, as of its last deed.
  std::int64_t points(const NodeId& node) const;
  bool is_banned(const NodeId& node, TimePoint now) const;
  // Whether to ask it, if there is a choice.
  bool may_provide(const NodeId& node) const;

 private:
  struct Score {
    std::int64_t points = 0;  // in hundredths
    TimePoint decayed_at, banned_until;
  };
  Score& touch(const NodeId& node, TimePoint now);

  std::map<NodeId, Score> scores_;
};

}  // namespace rumor::gossip
