// Bottleneck: what limits training at a peer now, in one sentence for people.
//
// It looks back over some ten seconds and asks, in this order: is there training at all; does it wait for others by
// the rules of the run file; does the link hold updates back; is the learning rate lowered since updates come late;
// does the step fill the time; does the period of the run file. Being alone is said besides.
//
// Thread: one owner. Memory: some forty figures.
#pragma once

#include <deque>
#include <string>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

class Bottleneck {
 public:
  explicit Bottleneck(double period_ms) : period_ms_(period_ms) {}

  // A step or an evaluation took so long.
  void computed(double seconds) { computed_ += seconds; }

  // Of the moment; fills in status.limit. Call some times a second. `seconds` since the start, never less than before.
  void judge(double seconds, NodeStatus& status);

 private:
  struct Mark {
    double seconds = 0, computed = 0, waited = 0;
    std::uint64_t steps = 0, held = 0;
  };
  double period_ms_, computed_ = 0;
  std::deque<Mark> marks_;  // oldest first
};

// What judge() says of shares of the time (compute, wait) and of the steps (held), each in [0, 1]; `steps`: since the
// first mark.
Limit limit_of(const NodeStatus& status, double compute, double wait, double held, std::uint64_t steps,
               double period_ms);

}  // namespace rumor::daemon
