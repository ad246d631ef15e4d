// Joining: replaces the replica by another peer's cut when that is cheaper than updates or the only way, and serves
// cuts to others (PROTOCOL.md 6.7, "Orphans").
//
// Taking: one donor offers a cut by its manifest, and every peer that can make the same cut may give chunks of it. The
// store keeps the chunks, so a process that starts again resumes the download. The cut does not move: later updates are
// pulled once it is installed.
//
// Thread: one owner, as Protocol. Memory: the parts that are arriving, one a donor; cuts being served are
// shared with the store.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "gossip/broadcast/state.h"

namespace rumor::gossip {

class Joining {
 public:
  static constexpr Duration progress_deadline = 15s, answer_deadline = 30s, look_again = 1s, work_again = 1ms;
  static constexpr Duration offer_kept = 20s, cut_kept = 60s;  // without a SNAPSHOT_WANT; without a joiner
  static constexpr Duration refused_for = 3s, given_up_after = 5s;
  static constexpr Duration silence_deadline = 120s;  // a silent donor may still be making the cut
  static constexpr Duration judged_after = 10s;  // after an installation; updates not back by then are lost
  static constexpr std::uint64_t choice_min = 256, choice_bytes_min = 16 << 20;  // updates lacking, or their bytes
  static constexpr std::uint64_t frame_overhead = 64;                            // of an update
  static constexpr std::size_t parts_in_flight = 4, donors_max = 4, joiners_max = 2;
  static constexpr std::uint64_t held_checks_max = 4096;

  explicit Joining(BroadcastState& state) : core_(state.core), streams_(state.streams), flow_(state.flow) {}

  // Resumes a download that an earlier process had begun.
  void start();
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
  TimePoint due() const { return due_; }

  // Whether it asks or fetches; range pulls wait then.
  bool busy() const { return phase_ != Phase::idle; }
  // "downloading the weights from 2 peers: 3.1 of 10.2 MB"; empty when idle.
  std::string text() const;
  void check_invariants() const;

 private:
  enum class Phase : std::uint8_t { idle, asking, fetching };
  struct Donor {
    enum class State : std::uint8_t { asked, giving, refused };
    State state = State::asked;
    bool later = false;                // it refused for the moment only
    bool again = false;                // it has refused this cut before
    bool silent = false;               // it did not answer, or stopped giving, when last asked
    std::uint32_t number = 0;          // of its offer
    std::vector<std::uint32_t> parts;  // wanted of it, in order
    Bytes arriving;                    // bytes of the first of them
    TimePoint deadline;
  };
  // A cut that is being made, and the links that wait for it.
  struct Making {
    Hash256 hash;  // of a cut that others have named; zero: the cut is of this moment
    std::vector<LinkId> links;
  };

  void due_by(TimePoint at) { due_ = std::min(due_, at); }
  // Taking (joining.cc).
  void stop();
  void abandon();
  bool needed(const Link& link) const;
  bool holds_all(const HaveSet& keys) const;
  bool cheaper(std::uint64_t lacking, std::uint64_t snapshot_bytes) const;
  // SNAPSHOT_ASK of our replica as it is now.
  SnapshotAsk ask_now(bool mutual) const;
  void first_offer(Link& link, const SnapshotOffer& offer);
  void begin_fetching();
  void take_back(Donor& donor);
  void drop_donor(LinkId link);
  Donor refusal(bool later) const;
  void want_more(Link& link, Donor& donor);
  bool helps(const Link& link, const Manifest& manifest) const;
  void take_manifest(Link& link, const Bytes& bytes);
  bool take_part(Link& link, std::uint32_t part, const Bytes& bytes);
  void seek_donors();
  void watch_donors();
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
  UpdateFlow& flow_;
  Phase phase_ = Phase::idle;
  TimePoint due_ = never;
  SnapshotAsk asked_;
  bool needed_ = false;
  std::uint64_t snapshot_bytes_ = 0, mean_update_bytes_ = 0;  // of the last offer
  HaveSet abandoned_;                                         // updates that we had before a snapshot and lack since
  TimePoint judged_at_ = never;

  std::map<LinkId, Donor> donors_;
  std::optional<LinkId> first_;  // the donor that offered the cut; the others only help
  Hash256 hash_;                 // of the manifest
  std::uint64_t manifest_bytes_ = 0, period_ = 0;
  bool knows_cut_ = false;           // the manifest is here: intake() of the store
  std::set<std::uint32_t> unasked_;  // parts to ask for
  std::uint64_t left_ = 0;           // parts still to come
  TimePoint progress_at_{};

  std::uint32_t offers_ = 0;
  std::optional<Making> making_;
  TimePoint cut_used_at_ = never;
};

}  // namespace rumor::gossip
