// RangeGuard: no update of this peer takes a weight near the end of the integer grid (runtime/base/grid_range.h).
//
// The origin of an update leaves out each entry that would. Its change waits in the residual.
//
// Thread: a plain value; refers to the weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/payload/apply.h"
#include "runtime/base/param_layout.h"

namespace rumor::compress {

class RangeGuard {
 public:
  // The weights to which the update will be added, or near them.
  explicit RangeGuard(const FloatView& view) : view_(view), unit_(view.unit) {}
  explicit RangeGuard(const WeightView& weights) : weights_(weights), unit_(weights.unit) {}
  // Positions, ascending, whose weights the update would move beyond range_guarded, or farther beyond it.
  // Requires: weights and update of this layout.
  std::vector<std::uint32_t> beyond(const ParamLayout& layout, const SparseUpdate& update) const;

  // The same where only the weights at the entries are known: before[e] belongs to entry e.
  static std::vector<std::uint32_t> beyond(const ParamLayout& layout, const SparseUpdate& update,
                                           std::span<const float> before, float unit);
  // No entry of this step takes a weight beyond whose magnitude is smaller than this, in weight units. It is negative
  // if the step alone leads beyond.
  static double safe_below(std::int32_t step, float unit);

 private:
  float before(std::uint32_t position) const {
    return view_.values.empty() ? weights_[position] : view_.values[position];
  }

  FloatView view_;
  WeightView weights_;  // where there is no view
  float unit_;
};

}  // namespace rumor::compress
