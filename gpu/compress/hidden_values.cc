#include "gpu/compress/hidden_values.h"

namespace rumor::gpu {

Result<void> HiddenValues::add(const Gpu& gpu, std::span<const std::uint32_t> positions) {
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  for (Result<void> room : {there_.make_room(gpu, positions_.size(), "entries that wait"),
                            kept_.make_room(gpu, positions_.size(), "entries that wait"),
                            zeros_.make_room(gpu, positions_.size(), "entries that wait")})
    if (!room) return room;
  there_.write(positions_.data(), positions_.size());
  gpu.table().fill(gpu.device(), zeros_.data(), 0, zeros_.bytes());
  return {};
}

void HiddenValues::hide(const Gpu& gpu, float* values) const {
  const auto count = static_cast<std::uint32_t>(positions_.size());
  gpu.table().gather(gpu.device(), reinterpret_cast<const std::uint32_t*>(values), there_.data(), count,
                     reinterpret_cast<std::uint32_t*>(kept_.data()));
  gpu.table().put(gpu.device(), there_.data(), zeros_.data(), count, values);
}

void HiddenValues::show(const Gpu& gpu, float* values) const {
  const auto count = static_cast<std::uint32_t>(positions_.size());
  gpu.table().put(gpu.device(), there_.data(), kept_.data(), count, values);
}

}  // namespace rumor::gpu
