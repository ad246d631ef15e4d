// DeviceReplica: weights on a GPU, as integers of the grid and as the floats that a model computes with. The floats are
// kept equal to float(weight) * unit, as in compress::FloatView.
//
// The weights change in one way only: add() adds a factor times the entries of an update, mod 2^32. The factor is 1 for
// a peer's update and -1 to take one back. A prediction of n peers adds n times a share of an update's steps; -n
// removes it. Additions commute and leave no remainder, so the bits are those of the sum in any order.
//
// Thread: one caller at a time; only fingerprints wait. Memory, device: 8 bytes per parameter.
#pragma once

#include <cstdint>
#include <span>

#include "compress/payload/update.h"
#include "gpu/device/device_update.h"

namespace rumor::gpu {

class DeviceReplica {
 public:
  // Weights and floats are unspecified until write(). Refers to `gpu`. Errors: Errc::limit.
  static Result<DeviceReplica> create(const Gpu& gpu, std::uint32_t params, int grid_bits);

  // Writes all weights, 4 bytes each over the bus. Requires: weights.size() is the number of parameters.
  void write(std::span<const std::int32_t> weights) const;

  // weights[index[e]] += factor * step, negated where negative[e]; the floats follow. `runs` gives the steps. Errors:
  // Errc::limit. Requires: positions strictly ascending and below params, which is not checked here; `runs` covers all
  // entries.
  Result<void> add(const PlacedEntries& entries, std::span<const compress::StepRun> runs, std::int32_t factor);

  const DeviceArray<float>& floats() const { return floats_; }

  // As Fingerprinter::of_weights(), and as of_update() of what add() would add. `seed` is the fingerprinter's. Both
  // wait. Errors: Errc::io; Errc::limit.
  Result<std::uint64_t> fingerprint(std::uint64_t seed) const;
  Result<std::uint64_t> fingerprint_of(const PlacedEntries& entries, std::span<const compress::StepRun> runs,
                                       std::int32_t factor, std::uint64_t seed);

  std::size_t weight_bytes() const { return weights_.bytes(); }
  std::size_t float_bytes() const { return floats_.bytes(); }
  std::size_t entry_bytes() const { return device_bytes(steps_, lanes_); }

 private:
  DeviceReplica(const Gpu& gpu, float unit) : gpu_(&gpu), unit_(unit) {}
  Result<Entries> with_steps(const PlacedEntries& entries, std::span<const compress::StepRun> runs,
                             std::int32_t factor);
  Result<std::uint64_t> read_lanes() const;

  const Gpu* gpu_;
  float unit_;
  DeviceArray<std::int32_t> weights_;
  DeviceArray<float> floats_;
  DeviceArray<StepSpan> steps_;  // of the last call; may be reused at once, because a device runs its work in order
  DeviceArray<std::uint32_t> lanes_;
};

}  // namespace rumor::gpu
