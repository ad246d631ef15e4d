#include "gossip/links/members.h"

#include <algorithm>

#include "gossip/trust/admission.h"
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
  out.raw(record.signature.view());
  out.sized(record.admit);
  const Hash256 hash = sha256(out.bytes());
  return ByteReader(hash.view()).u64();
}

bool supersedes(const PeerRecord& record, const Member& member) {
  if (record.number != member.record.number) return record.number > member.record.number;
  if (record.admit.size() != member.record.admit.size())
    return record.admit.size() > member.record.admit.size();
  return record != member.record && hash_of(record) < member.hash;
}

}  // namespace

MemberTable::MemberTable(const NodeId& self, const RunId& run, const Keys& keys,
                         std::vector<std::string> advertise, Bytes admit, std::uint32_t stage)
    : self_(self), run_(run), stage_(stage), keys_(&keys) {
  put_self(1, std::move(advertise), std::move(admit));
}

void MemberTable::put_self(std::uint64_t number, std::vector<std::string> addresses, Bytes admit) {
  if (addresses.size() > limits::addresses_per_record_max) addresses.resize(limits::addresses_per_record_max);
  PeerRecord record{self_, number, std::move(addresses)};
  record.admit = std::move(admit);
  record.stage = stage_;
  record.signature = keys_->sign(record_message(run_, record));
  put(members_[self_], std::move(record));
}

void MemberTable::put(Member& member, PeerRecord record) {
  hash_ ^= member.hash;
  member.record = std::move(record);
  member.hash = hash_of(member.record);
  hash_ ^= member.hash;
}

MemberTable::Learned MemberTable::apply(const PeerRecord& record, TimePoint now) {
  RUMOR_CHECK(!record.invalid());
  const auto at = members_.find(record.node);
  if (record.node == self_) {
    const PeerRecord& own = at->second.record;
    if (record.number < own.number || record == own || own.number == record_number_max)
      return Learned::nothing;
    if (!record_is_signed(*keys_, run_, record)) return Learned::forged;
    put_self(std::min(record.number + 1, record_number_max), own.addresses,
             record.admit.size() > own.admit.size() ? record.admit : own.admit);
    return Learned::changed;
  }
  if (at == members_.end()) {
    const auto dropped = forgotten_.find(record.node);
    if (dropped != forgotten_.end() && record.number <= dropped->second) return Learned::nothing;
    if (members_.size() >= limits::members_max) return Learned::nothing;
  } else if (!supersedes(record, at->second)) {
    return Learned::nothing;
  }
  if (!record_is_signed(*keys_, run_, record)) return Learned::forged;
  forgotten_.erase(record.node);
  Member& member = members_[record.node];
  member.heard_at = now;
  member.left = member.lost = false;
  put(member, record);
  return Learned::changed;
}

void MemberTable::heard(const NodeId& node, TimePoint now) {
  const auto at = members_.find(node);
  if (at == members_.end()) return;
  at->second.heard_at = now;
  at->second.left = at->second.lost = false;
}

void MemberTable::left(const NodeId& node) {
  const auto at = members_.find(node);
  if (at != members_.end() && node != self_) at->second.left = true;
}

void MemberTable::lost(const NodeId& node) {
  const auto at = members_.find(node);
  if (at != members_.end() && node != self_) at->second.lost = true;
}

void MemberTable::renew_self() {
  const Member& own = members_.at(self_);
  if (own.record.number == record_number_max) return;
  put_self(own.record.number + 1, own.record.addresses, own.record.admit);
}

bool MemberTable::set_addresses(std::vector<std::string> addresses) {
  const Member& own = members_.at(self_);
  if (own.record.number == record_number_max || own.record.addresses == addresses) return false;
  put_self(own.record.number + 1, std::move(addresses), own.record.admit);
  return true;
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

bool MemberTable::is_news(const PeerRecord& record) const {
  const Member* member = find(record.node);
  return !record.admit.empty() && (member == nullptr || member->record.admit != record.admit);
}

std::uint64_t MemberTable::joined_by(const NodeId& token, const NodeId& except) const {
  std::uint64_t count = 0;
  for (const auto& [node, member] : members_) {
    if (node == except || member.record.admit.empty()) continue;
    const Result<Admit> shown = Admit::decode(member.record.admit);
    if (shown.ok() && shown->token.id == token) ++count;
  }
  return count;
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
