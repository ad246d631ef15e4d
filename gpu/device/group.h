// GpuGroup: the GPUs of one peer. They sum floats and copy memory among themselves, by NCCL on real GPUs
// (gpu/device/table.h, join()). The rest of a peer uses only the first GPU. A group of one needs no library.
//
// Thread: one caller at a time for all GPUs of the group. A group outlives all memory on its GPUs.
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
  // Opens the GPUs with these numbers, in this order. Errors: those of Gpu::open(); Errc::usage for an empty list or a
  // number named twice; Errc::io if the GPUs cannot work together, naming what is missing.
  static Result<std::unique_ptr<GpuGroup>> open(const GpuTable& table, std::span<const int> ordinals);
  ~GpuGroup();
  GpuGroup(const GpuGroup&) = delete;
  GpuGroup& operator=(const GpuGroup&) = delete;

  std::size_t size() const { return gpus_.size(); }
  const Gpu& operator[](std::size_t i) const { return *gpus_[i]; }
  const Gpu& first() const { return *gpus_.front(); }
  // The name shown to users: "NAME", "2 x NAME" or "NAME + OTHER". Errors: Errc::io.
  Result<std::string> name() const;

  // values[0] becomes the elementwise sum of all arrays; the others keep their values. There is one array for each GPU.
  // On each GPU the sum runs after the work begun there before. Errors: Errc::io.
  Result<void> add_up(std::span<float* const> values, std::uint64_t count) const;
  // Copies memory[0] to all GPUs, under the same rules.
  Result<void> spread(std::span<void* const> memory, std::size_t bytes) const;

 private:
  GpuGroup() = default;
  Result<void> join();

  std::vector<std::unique_ptr<Gpu>> gpus_;
  Group* joined_ = nullptr;  // null for a group of one
};

}  // namespace rumor::gpu
