// Joining: replaces the replica by another peer's cut when that is cheaper than updates or the only way, and serves
// cuts to others (PROTOCOL.md 6.7, "Orphans").
//
// Taking: Joining asks one link for a snapshot when there is reason to, lets Download fetch the cut that this link
// offers, and installs it. The cut does not move: later updates are pulled once it is installed.
// Giving: at most two links at a time get a cut, which is made a few milliseconds at a time.
//
// Thread: one owner, as Protocol. Memory: that of Download; cuts being served are shared with the store.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gossip/broadcast/download.h"
#include "gossip/broadcast/state.h"

namespace rumor::gossip {

class Joining {
 public:
  static constexpr Duration look_again = Download::look_again, work_again = 1ms;
  static constexpr Duration offer_kept = 20s, cut_kept = 60s;  // without a SNAPSHOT_WANT; without a joiner
  static constexpr Duration judged_after = 10s;  // after an installation; updates not back by then are lost
  static constexpr std::uint64_t choice_min = 256, choice_bytes_min = 16 << 20;  // updates lacking, or their bytes
  static constexpr std::uint64_t frame_overhead = 64;                            // of an update
  static constexpr std::size_t joiners_max = 2;
  static constexpr std::uint64_t held_checks_max = 4096;

  explicit Joining(BroadcastState& state)
      : core_(state.core),
        streams_(state.streams),
        missing_(state.missing),
        flow_(state.flow),
        download_(state) {}

  // Resumes a download that an earlier process had begun.
  void start() { download_.resume(); }
  // Asks the link for a snapshot if there is reason to. Requires: an admitted link.
  void consider(Link& link);
  void on_ask(Link& link, const SnapshotAsk& ask);
  void on_join(Link& link, const SnapshotJoin& join);
  void on_offer(Link& link, const SnapshotOffer& offer);
  void on_want(Link& link, const SnapshotWant& want);
  // Returns true when this has installed a snapshot.
  bool on_data(Link& link, const SnapshotData& data);
  void link_lost(Link& link);
  // Calls consider() for every link soon.
  void look_later() { due_ = std::min(due_, core_.now + look_again); }
  // Returns the same as on_data().
  bool tick();
  TimePoint due() const { return std::min(due_, download_.due()); }

  // Whether it asks or fetches; range pulls wait then.
  bool busy() const { return download_.busy(); }
  // As Download::text().
  std::string text() const { return download_.text(); }
  void check_invariants() const { download_.check_invariants(); }

 private:
  // A cut that is being made, and the links that wait for it.
  struct Making {
    Hash256 hash;  // of a cut that others have named; zero: the cut is of this moment
    std::vector<LinkId> links;
  };

  void due_by(TimePoint at) { due_ = std::min(due_, at); }
  // Whether only a snapshot helps, of whichever link.
  bool stuck() const { return !streams_.cannot_revoke.empty() || core_.store.lacks_weights(); }
  // Taking (joining.cc).
  bool needed(const Link& link) const;
  bool holds_all(const HaveSet& keys) const;
  bool cheaper(std::uint64_t lacking, std::uint64_t snapshot_bytes) const;
  // SNAPSHOT_ASK of our replica as it is now.
  SnapshotAsk ask_now(bool mutual) const;
  bool install();
  void judge_lost();
  // Giving (joining_give.cc).
  std::string reason_to_refuse(Link& link, const SnapshotAsk& ask);
  std::string too_busy(const Link& link) const;
  bool usable(const Cut& cut) const;
  void refuse(Link& link, std::string reason, bool later);
  void offer(Link& link, const std::shared_ptr<const Cut>& cut);
  void make(Link& link, const Hash256& hash, const HaveSet* names);
  void work();
  bool watch_joiners();

  Core& core_;
  Streams& streams_;
  MissingKeys& missing_;
  UpdateFlow& flow_;
  Download download_;
  TimePoint due_ = never;  // without download_'s
  SnapshotAsk asked_;
  std::uint64_t snapshot_bytes_ = 0, mean_update_bytes_ = 0;  // of the last offer
  HaveSet abandoned_;                                         // updates that we had before a snapshot and lack since
  TimePoint judged_at_ = never;

  std::uint32_t offers_ = 0;
  std::optional<Making> making_;
  TimePoint cut_used_at_ = never;
};

}  // namespace rumor::gossip
