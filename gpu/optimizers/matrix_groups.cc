#include "gpu/optimizers/matrix_groups.h"

#include <algorithm>
#include <map>

#include "gpu/optimizers/newton_schulz.h"

namespace rumor::gpu {

namespace {

// The matrices in no group yet, by offset.
using Free = std::map<std::uint64_t, MatrixLayout>;

bool is_alike(const Free& free, std::uint64_t offset, const MatrixLayout& layout) {
  const auto found = free.find(offset);
  return found != free.end() && found->second.rows == layout.rows && found->second.columns == layout.columns &&
         found->second.stride == layout.stride;
}

// The longest row of matrices like the first one, which it begins with; of equally long ones the narrowest.
MatrixGroup longest(const Free& free) {
  const auto& [first, layout] = *free.begin();
  MatrixGroup best{layout, 1, 0};
  for (const auto& [second, other] : free) {
    if (second == first || !is_alike(free, second, layout)) continue;
    const std::uint64_t step = second - first;
    std::uint32_t count = 2;
    while (is_alike(free, first + count * step, layout)) ++count;
    if (count > best.count) best = {layout, count, step};
  }
  return best;
}

}  // namespace

std::vector<PlacedGroup> groups_of(std::span<const models::HiddenMatrix> matrices, Precision precision,
                                   std::size_t bytes_max) {
  Free free;
  for (const models::HiddenMatrix& matrix : matrices)
    free[matrix.offset] = {matrix.rows, matrix.cols, matrix.stride};
  std::vector<PlacedGroup> groups;
  while (!free.empty()) {
    const std::uint64_t first = free.begin()->first;
    const MatrixGroup all = longest(free);
    const std::size_t each = DeviceNewtonSchulz::matrix_bytes({all.layout.rows, all.layout.columns}, precision);
    const auto most = static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes_max / each, 1, all.count));
    const std::uint32_t parts = (all.count + most - 1) / most;
    for (std::uint32_t part = 0, done = 0; part < parts; ++part) {
      const std::uint32_t count = (all.count - done) / (parts - part);
      groups.push_back({static_cast<std::uint32_t>(first + done * all.step), {all.layout, count, all.step}});
      done += count;
    }
    for (std::uint32_t m = 0; m < all.count; ++m) free.erase(first + m * all.step);
  }
  return groups;
}

}  // namespace rumor::gpu
