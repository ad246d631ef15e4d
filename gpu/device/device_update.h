// DeviceUpdate: a SparseUpdate (compress/payload/update.h) whose entries are in GPU memory.
//
// Thread: one owner.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/payload/update.h"
#include "gpu/device/device.h"
#include "runtime/base/param_layout.h"

namespace rumor::gpu {

// Some entries of an update in GPU memory, without their steps.
struct PlacedEntries {
  const std::uint32_t* index = nullptr;
  const std::uint8_t* negative = nullptr;
  std::uint32_t count = 0;
};

struct DeviceUpdate {
  DeviceArray<std::uint32_t> index;  // the first `count`
  DeviceArray<std::uint8_t> negative;
  std::uint32_t count = 0;
  std::int32_t step = 0;                  // as in SparseUpdate
  std::vector<std::int32_t> tensor_step;  // as in SparseUpdate
  std::vector<std::uint32_t> counts;      // entries of each tensor; empty, or they add up to `count`
  DeviceArray<StepSpan> steps;            // the first `step_count`, by set_steps()
  std::uint32_t step_count = 0;

  PlacedEntries placed() const { return {index.data(), negative.data(), count}; }
  // Requires: first + some <= count.
  PlacedEntries placed(std::uint32_t first, std::uint32_t some) const {
    return {index.data() + first, negative.data() + first, some};
  }
  Entries entries() const { return {index.data(), negative.data(), count, steps.data(), step_count}; }
  // Makes room for `entries` entries. Errors: Errc::limit.
  Result<void> make_room(const Gpu& gpu, std::size_t entries);
  // Replaces the entries by those of a host update, or of another device update; steps stay unchanged. Errors:
  // Errc::limit.
  Result<void> write_entries(const Gpu& gpu, const compress::SparseUpdate& update);
  Result<void> copy_entries(const Gpu& gpu, const DeviceUpdate& from);
  // A copy on the host, 5 bytes an entry. Waits. Errors: Errc::io.
  Result<compress::SparseUpdate> read() const;
  // Writes `steps` from step, tensor_step and counts. Errors: Errc::limit.
  Result<void> set_steps(const Gpu& gpu);
  // Removes all entries; the memory is kept.
  void clear();
  std::size_t memory_bytes() const { return device_bytes(index, negative, steps); }
};

// Counts the entries of each tensor of a layout.
class TensorCounter {
 public:
  // Refers to `gpu`. Errors: Errc::limit.
  static Result<TensorCounter> create(const Gpu& gpu, const ParamLayout& layout);
  // Sets update.counts from its positions. Errors: Errc::io.
  Result<void> count(DeviceUpdate& update) const;
  std::size_t memory_bytes() const { return device_bytes(edges_, below_); }

 private:
  const Gpu* gpu_ = nullptr;
  DeviceArray<std::uint32_t> edges_, below_;
};

}  // namespace rumor::gpu
