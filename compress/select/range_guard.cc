#include "compress/select/range_guard.h"

#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/grid_range.h"

namespace rumor::compress {

std::vector<std::uint32_t> RangeGuard::beyond(const ParamLayout& layout, const SparseUpdate& update) const {
  RUMOR_CHECK(view_.values.size() == layout.params());
  // In doubles: a step may be less than the grain of a float near the limit, and still be a step outwards.
  const double unit = view_.unit, limit = range_guarded * unit;
  std::vector<std::uint32_t> found;
  for (const StepRun& run : step_runs(layout, update)) {
    const double worth = run.step * unit;
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const double before = view_.values[update.index[e]];
      const double after = before + (update.negative[e] != 0 ? -worth : worth);
      if (std::abs(after) > limit && std::abs(after) > std::abs(before)) found.push_back(update.index[e]);
    }
  }
  return found;
}

}  // namespace rumor::compress
