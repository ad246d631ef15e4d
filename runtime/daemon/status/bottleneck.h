// Bottleneck: what limits training at a peer now, in one sentence for people.
//
// It looks back over some ten seconds and takes the first cause that applies: no training; waiting for other peers by
// the rules of the run file; updates held back by the link; a learning rate lowered because updates arrive late; steps
// that fill the time; in a pipeline the stage or link that micro-batches wait for; the period of the run file. The
// sentence also says when the peer is alone.
//
// Thread: one owner. Memory: some forty figures.
#pragma once

#include <deque>
#include <string>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

// For what a peer waited with nothing to compute: seconds, or shares of the time.
struct StepWaits {
  double updates = 0;  // of other peers, by the rules of the run file
  double links = 0;    // to carry own updates, with exchange.narrow_links = "wait"
  double above = 0;    // in a pipeline: answers from above
  double link = 0;     // the same, while the link there was full
  double below = 0;    // micro-batches from below
};

class Bottleneck {
 public:
  explicit Bottleneck(double period_ms) : period_ms_(period_ms) {}

  // Adds the time that a step or an evaluation took.
  void computed(double seconds) { computed_ += seconds; }

  // Sets status.limit. Call some times a second, with `seconds` since the start, never less than before.
  void judge(double seconds, NodeStatus& status);

 private:
  struct Mark {
    double seconds = 0, computed = 0;
    std::uint64_t steps = 0, held = 0;
    StepWaits waits;
  };
  double period_ms_, computed_ = 0;
  std::deque<Mark> marks_;  // oldest first
};

// The verdict for shares of the time (compute, waits) and of the steps (held), each in [0, 1]. `steps` count from the
// start.
Limit limit_of(const NodeStatus& status, double compute, const StepWaits& waits, double held, std::uint64_t steps,
               double period_ms);

}  // namespace rumor::daemon
