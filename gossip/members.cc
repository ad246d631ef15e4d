#include "gossip/members.h"

#include <algorithm>

#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"

namespace rumor::gossip {

namespace {

std::uint64_t hash_of(const PeerRecord& record) {
  ByteWriter out;
  out.raw(record.node.view());
  out.varint(record.number);
  for (const std::string& address : record.addresses) out.text(address);
  const Hash256 hash = sha256(out.bytes());
  return ByteReader(hash.view()).u64();
}

}  // namespace

MemberTable::MemberTable(const NodeId& self, std::vector<std::string> advertise) : self_(self) {
  if (advertise.size() > limits::addresses_per_record_max) advertise.resize(limits::addresses_per_record_max);
  put(members_[self], {self, 1, std::move(advertise)});
}

void MemberTable::put(Member& member, PeerRecord record) {
  hash_ ^= member.hash;
  member.record = std::move(record);
  member.hash = hash_of(member.record);
  hash_ ^= member.hash;
}

bool MemberTable::apply(const PeerRecord& record, TimePoint now) {
  RUMOR_CHECK(!record.invalid());
  const auto at = members_.find(record.node);
  if (record.node == self_) {
    const PeerRecord& own = at->second.record;
    if (record.number < own.number || record == own || own.number == record_number_max) return false;
    put(at->second, {self_, std::min(record.number + 1, record_number_max), own.addresses});
    return true;
  }
  if (at == members_.end()) {
    const auto dropped = forgotten_.find(record.node);
    if (dropped != forgotten_.end() && record.number <= dropped->second) return false;
    if (members_.size() >= limits::members_max) return false;
    forgotten_.erase(record.node);
  } else if (record.number <= at->second.record.number) {
    return false;
  }
  Member& member = members_[record.node];
  member.heard_at = now;
  member.left = false;
  put(member, record);
  return true;
}

void MemberTable::heard(const NodeId& node, TimePoint now) {
  const auto at = members_.find(node);
  if (at == members_.end()) return;
  at->second.heard_at = now;
  at->second.left = false;
}

void MemberTable::left(const NodeId& node) {
  const auto at = members_.find(node);
  if (at != members_.end() && node != self_) at->second.left = true;
}

void MemberTable::renew_self() {
  Member& own = members_.at(self_);
  if (own.record.number == record_number_max) return;
  put(own, {self_, own.record.number + 1, own.record.addresses});
}

void MemberTable::forget(TimePoint now) {
  for (auto at = members_.begin(); at != members_.end();) {
    const Member& member = at->second;
    if (at->first == self_ || now - member.heard_at < forget_after) {
      ++at;
      continue;
    }
    if (forgotten_.size() < limits::members_max) forgotten_[at->first] = member.record.number;
    hash_ ^= member.hash;
    at = members_.erase(at);
  }
}

const Member* MemberTable::find(const NodeId& node) const {
  const auto at = members_.find(node);
  return at == members_.end() ? nullptr : &at->second;
}

void MemberTable::check_invariants() const {
  RUMOR_CHECK(members_.contains(self_));
  RUMOR_CHECK(members_.size() <= limits::members_max + 1);
  std::uint64_t hash = 0;
  for (const auto& [node, member] : members_) {
    RUMOR_CHECK(member.record.node == node);
    hash ^= member.hash;
  }
  RUMOR_CHECK(hash == hash_);
}

}  // namespace rumor::gossip
