// DeviceClip: models::clip_by_norm() of a gradient on a GPU.
//
// Thread: one caller at a time. Memory, device: 8 bytes for each 8192 parameters.
#pragma once

#include "gpu/device/device.h"

namespace rumor::gpu {

class DeviceClip {
 public:
  // Refers to `gpu`. Requires: norm_max > 0.
  DeviceClip(const Gpu& gpu, double norm_max);

  // Scales the first `count` values down to a Euclidean norm of norm_max if their norm is larger. The CPU does the
  // same, but adds the squares in another order. Returns the norm before clipping; waits. Errors: Errc::limit,
  // Errc::io.
  Result<double> cut(const DeviceArray<float>& gradient, std::size_t count);
  std::size_t memory_bytes() const { return device_bytes(partial_, total_); }

 private:
  const Gpu* gpu_;
  double norm_max_;
  DeviceArray<double> partial_, total_;
};

}  // namespace rumor::gpu
