// JumpsBack: notices a training loop that every few steps returns towards older weights of its own.
//
// Lookahead (Zhang, Lucas, Hinton, Ba, NeurIPS 2019) does so, and so do loops that reset weights to a mean of older
// ones. What other peers have changed since the last return is then taken back in part, in a single step. A steep loss
// takes changes back, too, but in every step, a little less each time. So a sample of changes is followed for some
// steps. One step alone that takes back a third or more is a jump, and a loop with a jump in most samples is found.
//
// Thread: one owner. Memory: some kilobytes. Costs: O(followed) a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/training/outside/weight_writes.h"

namespace rumor {

class JumpsBack {
 public:
  static constexpr int steps_followed = 16;
  // Begins to follow these, unless others are followed.
  void follow(std::span<const WeightWrite> writes);
  // Stops to follow these positions, ascending.
  void leave_out(std::span<const std::uint32_t> positions);
  // change[position] is what the loop's next step has added.
  void look(std::span<const float> change);
  // It is sure.
  bool found() const;

 private:
  void end_sample();

  std::vector<WeightWrite> followed_;
  std::vector<double> shares_;       // of them that each step has taken back; 0 where that may be chance
  double jumped_ = 0, samples_ = 0;  // of the last samples
};

}  // namespace rumor
