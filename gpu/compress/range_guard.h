// DeviceRangeGuard: compress::RangeGuard for an update and weights on a GPU, by the same rule.
//
// The GPU counts the entries whose weights are so near the end of the grid that the step might lead beyond. Where there
// are none, 20 bytes cross the bus. Only where there are some do all entries and their weights, 9 bytes each, and the
// host decides.
//
// Thread: one caller at a time. Memory, device: 8 bytes an entry.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device/device.h"
#include "gpu/device/device_update.h"
#include "runtime/base/param_layout.h"

namespace rumor::gpu {

class DeviceRangeGuard {
 public:
  // Copies the layout; refers to `gpu`.
  DeviceRangeGuard(const Gpu& gpu, ParamLayout layout, int grid_bits);

  // As compress::RangeGuard::beyond() with this view, floats of all parameters. Waits. Errors: Errc::io, Errc::limit.
  Result<std::vector<std::uint32_t>> beyond(const DeviceArray<float>& view, const DeviceUpdate& update);

  // Bytes of device memory.
  std::size_t memory_bytes() const { return device_bytes(weights_, zeros_, tiles_, selection_); }

 private:
  Result<void> gather(const DeviceArray<float>& view, const DeviceUpdate& update);
  Result<bool> any_near(const DeviceUpdate& update) const;

  const Gpu* gpu_;
  ParamLayout layout_;
  float unit_;
  DeviceArray<float> weights_;  // at the entries
  DeviceArray<float> zeros_;
  DeviceArray<Tile> tiles_;
  DeviceArray<Selection> selection_;
};

}  // namespace rumor::gpu
