// Storm: one run of the protocol under the faults that a seed draws: warm-up, chaos, heal, verify.
//
// First safety: while faults strike, nothing that checkers.h watches may break. Then liveness: the faults
// end, dead hosts come back (some seeds leave some dead), and within a bounded time all replicas must be
// equal to the sum that the oracle made by itself. After that a quiet phase shows that updates are pushed
// again, once, and at once.
//
// Thread: one owner. A failure is one line that repeats it; shrink() makes that line short.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/sim/storm/checkers.h"
#include "runtime/sim/storm/fault_script.h"

namespace rumor::sim {

struct StormReport {
  std::optional<Violation> violation;
  std::string replay;  // the command that repeats it
  std::string plan;    // nodes, kinds, actions: one line for people
  std::size_t nodes = 0, actions = 0;
  FaultSet enabled = 0;
  std::uint64_t updates = 0, lost = 0, snapshots = 0, events = 0, trace = 0;
  double virtual_seconds = 0;
  double converged_seconds = 0;      // from the end of the faults until all replicas were equal
  double copies = 0, delay_p99 = 0;  // of the quiet phase
};

// `spy` sees everything that happens as well.
using SpyMaker = std::function<std::unique_ptr<WorldObserver>(ProtocolWorld&)>;
StormReport run_storm(const StormRequest& request, const SpyMaker& spy = nullptr);

// The smallest request that still fails: kinds are left out one at a time, then actions, then hosts, then the
// time after the last action that is needed. `fails` runs one (in a process of its own, where a failed
// RUMOR_CHECK would end the program). Requires: fails(request).
StormRequest shrink(StormRequest request, const std::function<bool(const StormRequest&)>& fails);

// "rumor sim --protocol-only --faults storm --sim-seed 7 ...".
std::string replay_line(const StormRequest& request, const std::string& command = "rumor sim --protocol-only");

}  // namespace rumor::sim
