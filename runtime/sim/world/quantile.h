// The quantile of a list of measurements, as the figures of delays show it.
//
// Thread: plain functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rumor::sim {

// The value below which `share` of the values lie; 0 when there are none. Reorders the values. `share`: in [0, 1].
inline double quantile(std::vector<float>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(at)]);
}

}  // namespace rumor::sim
