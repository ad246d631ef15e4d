// MemberTable: a record of every node of the run that we have heard of, ourselves included.
//
// Two tables become equal by showing each other their records. The greater record number wins; of two records with one
// number, the one that shows more of a token; then (only a faulty node signs two) the one of smaller hash. hash() is
// equal on equal tables: an XOR of record hashes, so the order of arrival does not matter. No record enters without its
// node's signature; a record that would change nothing is not verified.
//
// Thread: one owner. Memory: limits::members_max records; more are ignored.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gossip/trust/signing.h"
#include "gossip/wire/wire.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

struct Member {
  PeerRecord record;
  TimePoint heard_at;  // by a link to it, or by a newer record
  bool left = false;   // it said goodbye; a newer record or a link takes that back
  bool lost = false;   // a link to it ended without a goodbye; the same takes that back
  std::uint64_t hash = 0;
};

class MemberTable {
 public:
  static constexpr Duration forget_after = 7 * 24h;

  enum class Learned : std::uint8_t { nothing, changed, forged };

  // `run`: or the id of the pipeline, where `stage`, that of this node, is not 0. `keys` must outlive the table.
  MemberTable(const NodeId& self, const RunId& run, const Keys& keys, std::vector<std::string> advertise,
              Bytes admit = {}, std::uint32_t stage = 0);

  // Changed: pass the table's record of that node on. A record of ourselves that is not ours makes ours newer,
  // and its longer `admit` becomes ours. Requires: `admit` is sound, if it is not the one we know.
  // Forged: it is not signed by its node. Requires: record.invalid() == nullopt.
  Learned apply(const PeerRecord& record, TimePoint now);
  // The node was heard on a link of our own.
  void heard(const NodeId& node, TimePoint now);
  void left(const NodeId& node);
  void lost(const NodeId& node);
  // Gives our own record a greater number, so that nodes far away know that we live.
  void renew_self();
  // Sets the addresses of our own record, which becomes newer. False: it has these already.
  bool set_addresses(std::vector<std::string> addresses);
  // Drops members without a word for forget_after, except those in a link (`heard` recently).
  void forget(TimePoint now);

  // The number of members that joined by this token, `except` left out.
  std::uint64_t joined_by(const NodeId& token, const NodeId& except) const;
  // Whether the record brings an `admit` that we have not seen.
  bool is_news(const PeerRecord& record) const;

  const PeerRecord& self() const { return members_.at(self_).record; }
  const Member* find(const NodeId& node) const;
  const std::map<NodeId, Member>& all() const { return members_; }
  std::uint64_t hash() const { return hash_; }
  void check_invariants() const;

 private:
  void put(Member& member, PeerRecord record);
  void put_self(std::uint64_t number, std::vector<std::string> addresses, Bytes admit);

  NodeId self_;
  RunId run_;
  std::uint32_t stage_;
  const Keys* keys_;
  std::map<NodeId, Member> members_;
  std::map<NodeId, std::uint64_t> forgotten_;  // number of the record that was dropped: it does not come back
  std::uint64_t hash_ = 0;
};

}  // namespace rumor::gossip
