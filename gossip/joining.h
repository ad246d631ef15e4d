// Joining: replaces the replica by another peer's snapshot when that is cheaper than updates or the only way,
// and serves snapshots to others (PROTOCOL.md 6.7, "Orphans").
//
// Thread: one owner, as Protocol. Memory: the snapshot being fetched, grown as its bytes arrive; those being
// served are shared with the store.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "gossip/core.h"

namespace rumor::gossip {

class Joining {
 public:
  static constexpr Duration progress_deadline = 15s, offer_kept = 60s, look_again = 1s;
  static constexpr Duration judged_after = 10s;  // a snapshot was installed: what has not come back is lost
  static constexpr std::uint64_t choice_min = 256;     // updates lacking
  static constexpr std::uint64_t frame_overhead = 64;  // of an update, in the comparison of costs
  static constexpr std::uint32_t chunks_in_flight = 4;
  static constexpr std::size_t joiners_max = 2;
  static constexpr std::uint64_t held_checks_max = 4096;

  explicit Joining(Core& core) : core_(core) {}

  // Asks the link for a snapshot if there is reason to. Requires: an admitted link.
  void consider(Link& link);
  void on_ask(Link& link, const SnapshotAsk& ask);
  void on_offer(Link& link, const SnapshotOffer& offer);
  void on_want(Link& link, const SnapshotWant& want);
  // True when a snapshot has been installed by this.
  bool on_data(Link& link, const SnapshotData& data);
  void link_lost(const Link& link);
  // There is reason to consider() again soon.
  void look_later() { due_ = std::min(due_, core_.now + look_again); }
  void tick();
  TimePoint due() const { return due_; }

  // Asking or fetching: range pulls wait.
  bool busy() const { return phase_ != Phase::idle; }
  // "downloading the weights from 89abcdef: 3.1 of 10.2 MB"; empty when idle.
  std::string text() const;

 private:
  enum class Phase : std::uint8_t { idle, asking, fetching };

  void stop();
  bool needed(const Link& link) const;
  bool holds_all(const HaveSet& keys) const;
  bool cheaper(std::uint64_t lacking, std::uint64_t snapshot_bytes) const;
  std::string reason_to_refuse(Link& link, const SnapshotAsk& ask);
  void want_more(Link& link);
  bool install(Link& link);
  void judge_lost();

  Core& core_;
  Phase phase_ = Phase::idle;
  std::optional<LinkId> donor_;
  SnapshotAsk asked_;
  bool needed_ = false;
  SnapshotOffer offer_;
  Bytes buffer_;
  std::uint32_t next_want_ = 0, next_chunk_ = 0;
  TimePoint deadline_ = never, due_ = never;
  std::uint64_t snapshot_bytes_ = 0, mean_update_bytes_ = 0;  // of the last offer
  std::uint32_t offers_ = 0;
  HaveSet abandoned_;  // ours before a snapshot and not since
  TimePoint judged_at_ = never;
  std::shared_ptr<const Bytes> hashed_;  // the snapshot last offered, and its hash
  Hash256 hash_;
};

}  // namespace rumor::gossip
