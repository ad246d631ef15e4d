// UndoneChanges: notices a training loop that takes back what was written into its weights.
//
// An optimizer that keeps weights of its own, such as float masters of bfloat16 weights, copies them over the model's
// after each step. So the changes of other peers are gone, the loop's next change is their opposite, and each peer
// trains alone without anybody seeing it. A sample of what was written shows it: with b the value before, a the value
// after, and x the value at the loop's next step, the regression of x - a on b - a is near 0 for an optimizer that goes
// on from a, and 1 for one that returns to b. Plain SGD with a large rate takes back more than half of a change where
// the loss is steep, for some steps: so the mean of the regressions of some thirty steps decides, each as much as any
// other. A step in which the loop moves so much that its regression means little counts little.
//
// A loop that takes changes back every few steps only is JumpsBack's.
//
// Thread: one owner. Memory: some kilobytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/training/outside/jumps_back.h"
#include "runtime/training/outside/weight_writes.h"

namespace rumor {

class UndoneChanges {
 public:
  // `before` was overwritten by `after` at this position of the flat vector. Cheap; takes a sample.
  void wrote(std::uint32_t position, float before, float after);
  // These positions, ascending, were written for another reason as well: they leave the sample.
  void leave_out(std::span<const std::uint32_t> positions);
  // After the loop's next step: change[position] is what the loop has added since. Forgets the sample.
  void look(std::span<const float> change);
  // True once, when it is sure that changes are taken back: after each step, or every few steps.
  bool found();
  bool found_jumps();

 private:
  std::vector<WeightWrite> sample_;
  JumpsBack jumps_;
  double share_ = 0, weight_ = 0;  // regressions of the last steps, summed up, and their weights
  bool told_ = false, told_jumps_ = false;
};

}  // namespace rumor
