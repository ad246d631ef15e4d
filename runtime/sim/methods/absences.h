// Absences: when which peer is away, from the kills of a fault plan (runtime/sim/cluster/fault_plan.h).
//
// A baseline has no links that could break, so kills are its only faults. A peer that is away takes no step and loses
// its state; when it is back, it starts from the state of the others.
//
// Thread: plain values.
#pragma once

#include <vector>

#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

class Absences {
 public:
  // Errors: Errc::usage for faults of another kind.
  static Result<Absences> create(const ClusterOptions& options, const std::string& mode);

  bool away(std::size_t i, TimePoint now) const { return back(i, now) > now; }
  // When a peer that is away at `now` is back; `now` itself for one that is here.
  TimePoint back(std::size_t i, TimePoint now) const;
  // Whether a peer is away at some time from `begin` to before `end`.
  bool away_between(std::size_t i, TimePoint begin, TimePoint end) const;
  bool any() const { return !kills_.empty(); }

 private:
  std::vector<PlannedFault> kills_;
};

}  // namespace rumor::sim
