// LinkFit: a longer round for each update while the links carry fewer updates than the peer would make.
//
// The protocol says how much time should pass between two own updates (gossip/broadcast/origin_pace.h). A round that is
// over sooner would have to be held back: its change waits in the residual, and the peer goes on as if it had not
// moved. A longer round moves on all the while. It has no more entries than the shorter one, so the bytes of a second
// are those that the links bear, and the density of a mini-batch is what gives way.
//
// Used where the peer chooses the length of its rounds by itself (exchange.local_steps = "auto"). All other peers hold
// updates back.
//
// Thread: one owner.
#pragma once

#include <cstdint>

#include "runtime/base/time.h"

namespace rumor {

class LinkFit {
 public:
  // A round is at most this many times as long as without it. What the links still do not take is held back.
  static constexpr std::uint32_t stretch_max = 4;

  // A step of so many mini-batches took this long.
  void stepped(double batches, Duration took);
  // Mini-batches of the next round: `wanted`, or as many as last for the interval.
  std::uint32_t batches(std::uint32_t wanted, Duration interval) const;
  // How long that many take; 0 before the first step.
  Duration time_of(std::uint32_t batches) const;

 private:
  double seconds_ = 0;  // of one mini-batch: the mean over some steps
};

}  // namespace rumor
