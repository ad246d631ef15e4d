// Download: fetches one cut, part by part, from every peer that can make it (PROTOCOL.md 6.7).
//
// The first donor offers a cut by its manifest, which names the updates in it and the hash of each chunk. Further links
// are asked whether they can make the same cut, and from then on any donor may give any part: part 0 is the manifest,
// part n + 1 is chunk n. The store keeps the chunks, so a process that starts again resumes the download.
//
// Joining owns it, decides when to take a snapshot and of which link to ask it first, and installs what has come.
// Download decides which donor gives which part, and when to give up a donor or the cut.
//
// Thread: one owner, as Protocol. Memory: the parts that are arriving, one a donor.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "gossip/broadcast/state.h"

namespace rumor::gossip {

class Download {
 public:
  static constexpr Duration progress_deadline = 15s, answer_deadline = 30s, look_again = 1s;
  static constexpr Duration refused_for = 3s, given_up_after = 5s;
  static constexpr Duration silence_deadline = 120s;  // a silent donor may still be making the cut
  static constexpr std::size_t parts_in_flight = 4, donors_max = 4;

  // The source of a whole cut.
  struct Source {
    std::optional<LinkId> first;  // the donor that offered the cut
    std::size_t donors = 0;       // with those that refused
    std::uint64_t period = 0;     // the newest that a donor has named
  };

  explicit Download(BroadcastState& state) : core_(state.core), streams_(state.streams) {}

  // ---- from the beginning to the end ----
  // Goes on with the cut that an earlier process had begun to fetch, if the store has one.
  void resume();
  // Awaits the offer of this link, which has just been asked for a snapshot. `needed`: updates that we lack are no
  // longer kept, or cannot be taken back here; otherwise the snapshot is only cheaper. Requires: idle.
  void await_offer(Link& link, bool needed);
  // Begins to fetch the cut of the offer that on_offer() has just returned true for.
  void begin(Link& link, const SnapshotOffer& offer);
  // Ends asking and fetching. The store keeps the chunks.
  void stop();
  // Stops, and says where the cut has come from. Requires: whole().
  Source end();

  // ---- frames ----
  // Returns true for the first offer of all: call begin() or stop() then.
  bool on_offer(Link& link, const SnapshotOffer& offer);
  // Returns true when this is the last part: the cut is whole().
  bool on_data(Link& link, const SnapshotData& data);
  void link_lost(LinkId link);

  // ---- time ----
  // Gives up on silent donors, and asks further ones. Does nothing while whole().
  void tick();
  TimePoint due() const { return due_; }

  // ---- what it knows ----
  bool busy() const { return phase_ != Phase::idle; }
  bool fetching() const { return phase_ == Phase::fetching; }
  // Whether it awaits the first offer, from this link.
  bool awaits_offer(LinkId link) const { return phase_ == Phase::asking && first_ == link; }
  bool needed() const { return needed_; }
  // Whether the manifest is here, in SnapshotPort::intake().
  bool knows_cut() const { return knows_cut_; }
  // Whether every chunk is here.
  bool whole() const { return knows_cut_ && left_ == 0; }
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

  void due_by(TimePoint at) { due_ = std::min(due_, at); }
  void abandon();
  void on_refusal(Link& link, Donor& donor, const SnapshotOffer& offer);
  void plan_chunks();
  bool take_part(Link& link, std::uint32_t part, const Bytes& bytes);
  void take_manifest(Link& link, const Bytes& bytes);
  bool helps(const Link& link, const Manifest& manifest) const;

  // Donors (download_donors.cc).
  void take_back(Donor& donor);
  Donor refusal(bool later) const;
  void want_more(Link& link, Donor& donor);
  void watch_donors();
  void seek_donors();

  Core& core_;
  Streams& streams_;
  Phase phase_ = Phase::idle;
  bool needed_ = false;
  TimePoint due_ = never;
  std::map<LinkId, Donor> donors_;
  std::optional<LinkId> first_;  // the donor that offered the cut; the others only help
  Hash256 hash_;                 // of the manifest
  std::uint64_t manifest_bytes_ = 0, period_ = 0;
  bool knows_cut_ = false;           // the manifest is here: intake() of the store
  std::set<std::uint32_t> unasked_;  // parts to ask for
  std::uint64_t left_ = 0;           // parts still to come
  TimePoint progress_at_{};
};

}  // namespace rumor::gossip
