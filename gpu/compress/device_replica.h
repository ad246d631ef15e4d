// DeviceReplica: weights on a GPU, as integers of the grid, and as the floats that a model computes with, which show
// them where they lie: float(weight) * unit, as compress::FloatView has it.
//
// All that happens to the weights is one thing: a factor times the entries of an update is added, mod 2^32. What a peer
// did has the factor 1, what is taken back -1, and what is expected of n others n, of a share of its steps; what is
// expected no longer comes off with -n. Additions commute and leave no remainder, so the bits are those of the sum,
// whatever came first.
//
// Thread: one caller at a time; nothing waits but fingerprints. Memory, device: 8 bytes a parameter.
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

  // All of them, 4 bytes each over the bus. Requires: as many as there are.
  void write(std::span<const std::int32_t> weights) const;

  // weights[index[e]] += factor * step, down where negative[e]; the floats follow. `runs` gives the steps. Errors:
  // Errc::limit. Requires: positions strictly ascending and below params, which nothing checks here; runs of all
  // entries.
  Result<void> add(const PlacedEntries& entries, std::span<const compress::StepRun> runs, std::int32_t factor);

  const DeviceArray<float>& floats() const { return floats_; }

  // As Fingerprinter::of_weights(), and as of_update() of what add() would add. `seed` is the fingerprinter's. Waits.
  // Errors: Errc::io; Errc::limit.
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
  DeviceArray<StepSpan> steps_;  // of the last call: a device takes its work in order
  DeviceArray<std::uint32_t> lanes_;
};

}  // namespace rumor::gpu
