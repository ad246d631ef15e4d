#include "gossip/overlay/records.h"

#include "gossip/overlay/overlay.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

RecordsLink& records_part(Link& link) { return static_cast<OverlayLink&>(*link.overlay).records; }

}  // namespace

// ---- records that come ----

bool Records::learn(Link& link, const PeerRecord& record) {
  if (core_.members.is_news(record) &&
      !admit_is_sound(core_.keys, core_.membership(), core_.rule.owner, record.node, record.admit)) {
    core_.ban(link, str("shows a record of ", record.node.brief(), " with a forged token"));
    return false;
  }
  const MemberTable::Learned learned = core_.members.apply(record, core_.now);
  if (learned == MemberTable::Learned::forged) {
    core_.ban(link, str("shows a record of ", record.node.brief(), " that ", record.node.brief(),
                        " has not signed for this run"));
    return false;
  }
  if (learned == MemberTable::Learned::changed) spread(record);
  if (learned == MemberTable::Learned::changed && record.node == core_.options.self) duplicates_.look_up(record);
  return learned == MemberTable::Learned::nothing || core_.charge(link, record_units);
}

void Records::learn_all(Link& link, const std::vector<PeerRecord>& records) {
  for (const PeerRecord& record : records) {
    if (!learn(link, record)) return;
  }
}

void Records::spread(const PeerRecord& record) {
  changed_.insert(record.node);
  if (changes_at_ == never) changes_at_ = core_.now + batched;
  due_ = std::min(due_, changes_at_);
  if (record.node == core_.options.self) return;
  const bool higher = record.node < core_.options.self;
  const TimePoint first_try =
      core_.now + jittered(100ms, core_.prng) + (higher ? AddressBook::higher_id_waits : Duration{0});
  for (const std::string& address : record.addresses) {
    book_.add_member(address, record.node, first_try);
    due_ = std::min(due_, first_try);
  }
}

void Records::own_renewed() {
  changed_.insert(core_.options.self);
  changes_at_ = core_.now;
}

// ---- tables and changes ----

void Records::send_table(Link& link) {
  Peers peers;
  records_part(link).table_sent_at = core_.now;
  for (const auto& [node, member] : core_.members.all()) {
    peers.records.push_back(member.record);
    if (peers.records.size() == limits::records_per_frame_max) {
      core_.send(link, encode(peers));
      peers.records.clear();
    }
  }
  if (!peers.records.empty()) core_.send(link, encode(peers));
}

void Records::on_digest(Link& link, const Digest& digest) {
  RecordsLink& its = records_part(link);
  its.mismatches = digest.table_hash == core_.members.hash() ? 0 : its.mismatches + 1;
  if (its.mismatches >= 2 && core_.now - its.table_sent_at >= table_interval) send_table(link);
}

std::vector<PeerRecord> Records::some() {
  std::vector<PeerRecord> records;
  for (const auto& [node, member] : core_.members.all()) {
    if (node != core_.options.self && !member.record.addresses.empty()) records.push_back(member.record);
  }
  core_.prng.shuffle(std::span(records));
  if (records.size() > some_max) records.resize(some_max);
  return records;
}

void Records::tick() {
  if (core_.now >= changes_at_) send_changes();
  due_ = never;
}

void Records::send_changes() {
  Peers peers;
  const auto flush = [&] {
    if (!peers.records.empty()) core_.each_member_link([&](Link& link) { core_.send(link, encode(peers)); });
    peers.records.clear();
  };
  for (const NodeId& node : changed_) {
    const Member* member = core_.members.find(node);
    if (member == nullptr) continue;
    peers.records.push_back(member->record);
    if (peers.records.size() == limits::records_per_frame_max) flush();
  }
  flush();
  changed_.clear();
  changes_at_ = never;
}

}  // namespace rumor::gossip
