// Repair: finds by digests that two replicas differ, finds by vectors which updates are missing, and pulls them
// (PROTOCOL.md 6.3 to 6.6).
//
// repair.cc has digests and vectors; repair_pull.cc the pulls. Spread asks for what Repair wants to pull, within the
// window of the link.
//
// Thread: one owner, as Protocol. Costs: a digest per link and second at most; a vector is O(streams + gaps).
#pragma once

#include <map>

#include "gossip/broadcast/evidence.h"
#include "gossip/broadcast/joining.h"
#include "gossip/broadcast/spread.h"

namespace rumor::gossip {

class Repair {
 public:
  static constexpr Duration digest_changed = 1s, digest_idle = 10s, finished_quiet = 5ms, finished_latest = 200ms;
  static constexpr Duration vector_in_flow = 10s, vector_quiet = 1s, vector_finished = 100ms;
  // While updates flow, the interval grows by this for each stream: with a thousand streams, vectors would otherwise be
  // most of all control bytes.
  static constexpr Duration vector_in_flow_a_stream = 40ms;
  static constexpr Duration flow_within = 1s, pull_grace = 2s;
  static constexpr std::uint32_t vector_parts_max = 64;
  static constexpr std::uint64_t gone_max = 65'536;
  static constexpr Duration acknowledge_every = 10s;
  static constexpr std::size_t acknowledged_members_max = 64;

  Repair(BroadcastState& state, Spread& spread, Joining& joining, Evidence& evidence)
      : core_(state.core),
        streams_(state.streams),
        missing_(state.missing),
        flow_(state.flow),
        pace_(state.pace),
        spread_(spread),
        joining_(joining),
        evidence_(evidence) {}

  // The link has just been admitted by this greeting.
  void admitted(Link& link, const Hello& hello);
  void on_digest(Link& link, const Digest& digest);
  void on_vector(Link& link, const Vector& message);
  // Call it before Spread::on_not_available().
  void on_not_available(Link& link, const NotAvailable& message);
  // Pulls more of the keys that the link's vector showed, as far as its window has room.
  void refill(Link& link);
  void finished_changed();
  // A snapshot has replaced the replica.
  void installed();
  // Call it at the end of a turn, while not ready() or when the have-set has changed.
  void flush(bool alone);
  void tick();
  TimePoint due() const { return due_; }

  bool ready() const { return ready_; }
  // The number of updates still lacking of those that the first peer had.
  std::uint64_t lacking() const;

 private:
  void due_by(TimePoint at) { due_ = std::min(due_, at); }
  void send_digest(Link& link, bool reply);
  void send_vector(Link& link, bool reply);
  void differs(Link& link, const Digest& digest);
  void count_names(Link& link);
  // Closes the link whose vectors take most while all together take too much.
  void bound_names();
  void answer(Link& link);
  void report_acknowledged();
  bool digest_is_due(const Link& link, const Digest& ours);

  // Pulls (repair_pull.cc).
  bool is_pushed(const Stream& stream, const Link& link) const;
  void plan_pulls(Link& link);
  void watch_pulls(Link& link);

  Core& core_;
  Streams& streams_;
  MissingKeys& missing_;
  UpdateFlow& flow_;
  OriginPace& pace_;
  Spread& spread_;
  Joining& joining_;
  Evidence& evidence_;
  TimePoint due_ = never;
  bool ready_ = false;
  TimePoint acknowledge_at_{};
  std::map<NodeId, HaveSet> held_by_;  // what members have said that they hold
};

}  // namespace rumor::gossip
