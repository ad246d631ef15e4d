// Weight writes: what of the changes of other peers a training loop takes back with its next step.
//
// Thread: any. Costs: O(writes), and O(log positions) for each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rumor {

// A weight of the flat vector was changed by so much, which is not 0.
struct WeightWrite {
  std::uint32_t position;
  float by;
};

// The regression of the negative change on the writes: 0 for a loop that goes on from them, 1 for one that returns to
// what was before.
struct TakenBack {
  double share = 0;
  double variance = 0;  // of the share: large where the loop moves much more than others do
};

// change[position] is what the loop's step has added. Requires: there are writes, all within `change`.
TakenBack taken_back(std::span<const WeightWrite> writes, std::span<const float> change);

// Erases the writes at these positions, ascending.
void leave_out(std::vector<WeightWrite>& writes, std::span<const std::uint32_t> positions);

}  // namespace rumor
