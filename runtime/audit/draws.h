// Draws: which segments of other peers this one makes again (runtime/AUDIT.md, "Segments").
//
// A segment is a candidate once all of it is here. The first of a stream takes turns with the others, among which the
// smallest draw comes first. A draw is a hash with a secret, so nobody else knows it. At the end of a run the last
// segment of each stream is a candidate, too.
//
// Thread: one owner. Memory: candidates_max segments and streams_max streams.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "gossip/contract/have_set.h"
#include "runtime/audit/segment_audit.h"

namespace rumor::audit {

// Which of a run's segments are drawn.
struct AuditedPart {
  std::string peer = {};                       // those of peers whose ids begin with these hex digits; empty: all
  std::uint64_t first = 1, last = UINT64_MAX;  // with any of these updates of their stream

  bool has(const Segment& segment) const {
    const bool of_peer = peer.empty() || segment.origin.hex().starts_with(peer);
    return of_peer && segment.first <= last && first <= segment.last;
  }
};

class Draws {
 public:
  static constexpr std::size_t candidates_max = 256, streams_max = 4096;

  // segment: updates of each; 0: there are none, and nothing is ever drawn. self: whose segments are not drawn.
  Draws(const Hash256& secret, const NodeId& self, std::uint64_t segment, AuditedPart part = {})
      : secret_(secret), self_(self), segment_(segment), part_(std::move(part)) {}

  // The replica has taken this update and holds `have`, which includes it.
  void on_update(const UpdateKey& update, const NodeId& origin, const gossip::HaveSet& have);
  // No more updates will come: the last segments of all streams are candidates, whole or not.
  void end(const gossip::HaveSet& have);
  // Takes the next segment out. Those whose states no origin keeps any more are left out.
  std::optional<Segment> next(const gossip::HaveSet& have);
  // The same, of first and last segments only.
  std::optional<Segment> next_special(const gossip::HaveSet& have) { return take(special_, have); }

  std::size_t candidates() const { return special_.size() + others_.size(); }

 private:
  using Draw = std::uint64_t;
  using Candidates = std::map<std::pair<Draw, StreamId>, Segment>;
  Draw draw_of(const Segment& segment) const;
  void add(Candidates& candidates, const Segment& segment, const gossip::HaveSet& have);
  std::optional<Segment> take(Candidates& candidates, const gossip::HaveSet& have);

  Hash256 secret_;
  NodeId self_;
  std::uint64_t segment_;
  AuditedPart part_;
  Candidates special_, others_;  // first and last ones; all in between
  bool special_next_ = true;
  std::map<StreamId, NodeId> streams_;  // with their origins
};

}  // namespace rumor::audit
