// HiddenValues: some values of an array on a GPU that are zero for a while, so that no selection finds them.
//
// They come back to the last bit. DeviceCompressor::leave_out() hides entries this way.
//
// Thread: one owner. Memory: 4 bytes a position; on the device 12.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device/device.h"

namespace rumor::gpu {

class HiddenValues {
 public:
  // More positions. Errors: Errc::limit. Requires: each position occurs once; nothing is hidden now.
  Result<void> add(const Gpu& gpu, std::span<const std::uint32_t> positions);
  // No positions any more. Requires: nothing is hidden now.
  void forget() { positions_.clear(); }
  bool empty() const { return positions_.empty(); }

  // Keeps the values and sets them to zero.
  void hide(const Gpu& gpu, float* values) const;
  // Puts them back.
  void show(const Gpu& gpu, float* values) const;

  std::size_t memory_bytes() const { return device_bytes(there_, kept_, zeros_); }

 private:
  std::vector<std::uint32_t> positions_;
  DeviceArray<std::uint32_t> there_;
  DeviceArray<float> kept_, zeros_;
};

}  // namespace rumor::gpu
