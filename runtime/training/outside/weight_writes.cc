#include "runtime/training/outside/weight_writes.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor {

TakenBack taken_back(std::span<const WeightWrite> writes, std::span<const float> change) {
  RUMOR_CHECK(!writes.empty());
  double product = 0, written = 0, changed = 0;
  for (const WeightWrite& write : writes) {
    RUMOR_CHECK(write.position < change.size());
    const double by = write.by, own = change[write.position];
    product -= by * own;
    written += by * by;
    changed += own * own;
  }
  const double share = product / written;
  return {share, std::max(changed - share * product, 0.0) / (static_cast<double>(writes.size()) * written)};
}

void leave_out(std::vector<WeightWrite>& writes, std::span<const std::uint32_t> positions) {
  std::erase_if(writes, [&](const WeightWrite& write) {
    return std::binary_search(positions.begin(), positions.end(), write.position);
  });
}

}  // namespace rumor
