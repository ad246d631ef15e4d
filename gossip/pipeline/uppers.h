// Uppers: a replica's neighbours in the stage above. Who has credit, which transfers wait there for an
// answer, how long an answer takes, and so who gets the next micro-batch and who is given up (PIPELINE.md,
// 5).
//
// Thread: one owner. Memory: some bytes for each transfer without an answer. Randomness: that of the caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "gossip/contract/events.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

// A replica's own number of a micro-batch that it holds. Ascending, never used twice.
using Slot = std::uint64_t;

class Uppers {
 public:
  static constexpr std::int64_t lateness = 4;  // times as long as the other neighbours need
  static constexpr Duration patience_min = 1s, patience_unmeasured = 10s;
  // A neighbour that is asked nothing for so many times its pace, and for `forgets_max` at most, counts as twice as
  // quick from then on: it may have become so.
  static constexpr std::int64_t forgets_after = 8;
  static constexpr Duration forgets_max = 2s;

  // A transfer without an answer.
  struct Awaited {
    Slot slot = 0;
    TimePoint sent;
    std::int64_t place = 1;  // in the neighbour's queue, as it was sent
    TimePoint late_at;
  };
  struct Late {
    LinkId link;
    std::uint64_t transfer = 0;
    Slot slot = 0;
  };
  // One neighbour, since it was linked.
  struct Figures {
    LinkId link;
    Duration pace{0};            // between two of its answers while it has work; 0: not measured
    std::uint64_t awaited = 0;   // transfers without an answer
    std::uint64_t answered = 0;  // transfers with one
  };

  void add(LinkId link) { uppers_[link]; }
  bool empty() const { return uppers_.empty(); }
  std::size_t size() const { return uppers_.size(); }
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [link, upper] : uppers_) visit(link);
  }
  bool has(LinkId link) const { return uppers_.contains(link); }
  // The micro-batches whose answer is awaited there, oldest first.
  std::vector<Slot> remove(LinkId link);
  // Requires of this and the following: has(link). The reason why a limit must not be used, or nothing.
  std::optional<std::string_view> take_credit(LinkId link, std::uint64_t limit);

  // One of those with credit, drawn among the soonest; `but` only if no other has any. None: nobody has, or a quicker
  // neighbour without credit is expected to be free sooner than those who have. Then next_deadline() says when to look
  // again, if nothing happens before.
  std::optional<LinkId> choose(Prng& prng, std::optional<LinkId> but, TimePoint now);
  // Gives the number of the transfer. Requires: the link has credit.
  std::uint64_t send(LinkId link, Slot slot, TimePoint now);
  // Null for a transfer that has ended, or was never sent.
  const Awaited* find(LinkId link, std::uint64_t transfer) const;
  bool was_sent(LinkId link, std::uint64_t transfer) const { return transfer <= uppers_.at(link).sent; }
  // The answer is there: measures. Requires: find().
  void answered(LinkId link, std::uint64_t transfer, TimePoint now);
  // Awaits no answer any more.
  void forget(LinkId link, std::uint64_t transfer) { uppers_.at(link).awaited.erase(transfer); }

  // Transfers that are late while another neighbour has credit. Their neighbours count as twice as slow from
  // now on. All others that are late are waited for once more.
  std::vector<Late> take_late(TimePoint now);
  TimePoint next_deadline() const;
  std::vector<Figures> figures() const;
  bool owe_answers() const {
    return std::any_of(uppers_.begin(), uppers_.end(), [](const auto& one) { return !one.second.awaited.empty(); });
  }

 private:
  struct Upper {
    std::uint64_t limit = 0, sent = 0, answered = 0;  // numbers of transfers
    std::map<std::uint64_t, Awaited> awaited;
    Duration time{0};  // of one transfer; 0: not measured
    Duration pace{0};  // Figures::pace
    TimePoint quiet_since{};  // its last answer, or when it was given up
    bool has_credit() const { return sent < limit; }
    // Since when it has owed an answer. Requires: one is awaited.
    TimePoint owes_since() const { return std::max(quiet_since, awaited.begin()->second.sent); }
    // The pace, less what is forgotten of it. Requires: it is measured.
    Duration remembered(TimePoint now) const;
    // When a transfer sent now is expected to be answered, from now. `unmeasured`: the pace of one without any.
    Duration expected(Duration unmeasured, TimePoint now) const;
  };
  using Member = Duration Upper::*;

  Duration mean(Member which, std::optional<LinkId> but = std::nullopt) const;
  Duration patience(LinkId link, std::int64_t place) const;
  bool another_has_credit(LinkId but) const;
  void wait_for_quicker(std::optional<LinkId> but, Duration open, Duration unmeasured, TimePoint now);

  std::map<LinkId, Upper> uppers_;
  TimePoint look_again_ = never;  // choose()
};

}  // namespace rumor::gossip
