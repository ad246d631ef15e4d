#include "compress/select/range_guard.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/grid_range.h"

namespace rumor::compress {
namespace {

// The rule; before(e) is the weight of entry e. In doubles: a step may be less than the grain of a float near the
// limit, and still be a step outwards.
template <typename Before>
std::vector<std::uint32_t> entries_beyond(const ParamLayout& layout, const SparseUpdate& update, double unit,
                                          Before&& weight_before) {
  const double limit = range_guarded * unit;
  std::vector<std::uint32_t> found;
  for (const StepRun& run : step_runs(layout, update)) {
    const double worth = run.step * unit;
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const double before = weight_before(e);
      const double after = before + (update.negative[e] != 0 ? -worth : worth);
      if (std::abs(after) > limit && std::abs(after) > std::abs(before)) found.push_back(update.index[e]);
    }
  }
  return found;
}

}  // namespace

std::vector<std::uint32_t> RangeGuard::beyond(const ParamLayout& layout, const SparseUpdate& update) const {
  RUMOR_CHECK(std::max(view_.values.size(), weights_.weights.size()) == layout.params());
  return entries_beyond(layout, update, unit_, [&](std::size_t e) { return before(update.index[e]); });
}

std::vector<std::uint32_t> RangeGuard::beyond(const ParamLayout& layout, const SparseUpdate& update,
                                              std::span<const float> before, float unit) {
  RUMOR_CHECK(before.size() == update.index.size());
  return entries_beyond(layout, update, unit, [&](std::size_t e) { return before[e]; });
}

double RangeGuard::safe_below(std::int32_t step, float unit) {
  return (static_cast<double>(range_guarded) - step) * static_cast<double>(unit);
}

}  // namespace rumor::compress
