// Finishing: how long a peer that has finished waits for the others before it ends. It waits until every neighbour has
// finished and holds the same updates. It gives up on neighbours that make no progress.
//
// A follower has one neighbour, which may still get the last update of a peer that the follower is not linked to. So it
// waits until its neighbour leaves, or for a while in which nothing arrives.
//
// A function of its arguments; reads no clock. Thread: its owner's.
#pragma once

#include <optional>

#include "runtime/base/time.h"

namespace rumor {

class Finishing {
 public:
  // Without a link: how long to wait for one, while other members are known that may hold different updates.
  static constexpr Duration alone = 10s;
  // With links: how long to wait for neighbours that stay unfinished or different, since the last update arrived.
  static constexpr Duration stuck = 60s;
  // A follower whose neighbour holds the same: how long nothing must arrive.
  static constexpr Duration quiet = 5s;

  struct View {
    std::uint64_t updates;  // in the replica; more than before is progress
    bool has_links;
    bool all_converged;   // every neighbour has finished and, with a common replica, holds the same digest
    bool handed_over;   // one neighbour has; or models are their owners', and nobody needs anything from here
    bool knows_others;  // members that have not said goodbye, reachable or not
    bool follows = false;  // it does not train (role observe)
  };
  enum class Verdict : std::uint8_t { waits, done, given_up };

  Verdict judge(TimePoint now, const View& view);
  // When to judge again although nothing has happened; `never` before the first judgement.
  TimePoint deadline() const;

 private:
  std::uint64_t updates_ = 0;
  bool handed_over_ = false;  // since the last progress
  TimePoint progress_at_{}, stuck_at_ = never;
  std::optional<TimePoint> alone_until_, quiet_until_;
};

}  // namespace rumor
