// GpuGroup: the GPUs of one peer. They add up floats and hand memory on among themselves, by NCCL on real ones
// (gpu/device/table.h, join()). The first is the one that the rest of a peer knows; a group of one needs no library.
//
// Thread: one caller at a time, all of its GPUs together. A group outlives all memory on its GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/device/device.h"

namespace rumor::gpu {

class GpuGroup {
 public:
  // Those of these numbers, in this order. Errors: those of Gpu::open(); Errc::usage for none, or one that is named
  // twice; Errc::io where they cannot work together, with what is missing.
  static Result<std::unique_ptr<GpuGroup>> open(const GpuTable& table, std::span<const int> ordinals);
  ~GpuGroup();
  GpuGroup(const GpuGroup&) = delete;
  GpuGroup& operator=(const GpuGroup&) = delete;

  std::size_t size() const { return gpus_.size(); }
  const Gpu& operator[](std::size_t i) const { return *gpus_[i]; }
  const Gpu& first() const { return *gpus_.front(); }
  // For people: "NAME", "2 x NAME" or "NAME + OTHER". Errors: Errc::io.
  Result<std::string> name() const;

  // values[0] becomes the sum of all, float by float; the others keep theirs. One array a GPU, on each behind the work
  // that was begun there before. Errors: Errc::io.
  Result<void> add_up(std::span<float* const> values, std::uint64_t count) const;
  // Copies memory[0] to all GPUs, under the same rules.
  Result<void> spread(std::span<void* const> memory, std::size_t bytes) const;

 private:
  GpuGroup() = default;
  Result<void> join();

  std::vector<std::unique_ptr<Gpu>> gpus_;
  Group* joined_ = nullptr;  // null: there is one
};

}  // namespace rumor::gpu
