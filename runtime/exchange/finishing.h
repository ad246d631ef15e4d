// How long a peer that has finished waits for the others before it ends: until every neighbour has finished and holds
// what it holds, and for those that do not come so far, no longer than it takes to see that they will not.
//
// A function of what the node shows it; reads no clock. Thread: its owner's.
#pragma once

#include <optional>

#include "runtime/base/time.h"

namespace rumor {

class Finishing {
 public:
  // Without a link, while members are known that may hold less, or more: how long one is awaited.
  static constexpr Duration alone = 10s;
  // Neighbours that stay unfinished or different: how long since something last arrived.
  static constexpr Duration stuck = 60s;

  struct View {
    std::uint64_t updates;  // in the replica: more than before is progress
    bool has_links;
    bool all_converged;   // every neighbour has finished and, with a common replica, holds the same digest
    bool handed_over;   // one of them has, or, with models of their own, nobody needs anything from here any more
    bool knows_others;  // members that have not said goodbye, reachable or not
  };
  enum class Verdict : std::uint8_t { waits, done, given_up };

  Verdict judge(TimePoint now, const View& view);
  // When to judge again though nothing has happened; `never` before the first judgement.
  TimePoint deadline() const;

 private:
  std::uint64_t updates_ = 0;
  bool handed_over_ = false;  // of what is in the replica now
  TimePoint stuck_at_ = never;
  std::optional<TimePoint> alone_until_;
};

}  // namespace rumor
