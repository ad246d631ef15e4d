#include "gpu/compress/device_replica.h"

#include <cmath>
#include <vector>

#include "runtime/base/check.h"

namespace rumor::gpu {

Result<DeviceReplica> DeviceReplica::create(const Gpu& gpu, std::uint32_t params, int grid_bits) {
  DeviceReplica made(gpu, std::ldexp(1.0f, -grid_bits));
  for (Result<void> room : {made.weights_.make_room(gpu, params, "weights"),
                            made.floats_.make_room(gpu, params, "weights"),
                            made.lanes_.make_room(gpu, 2, "a fingerprint")})
    if (!room) return room.error();
  return made;
}

void DeviceReplica::write(std::span<const std::int32_t> weights) const {
  RUMOR_CHECK(weights.size() == weights_.size());
  weights_.write(weights.data(), weights.size());
  gpu_->table().show(gpu_->device(), weights_.data(), static_cast<std::uint32_t>(weights.size()), floats_.data(),
                     unit_);
}

Result<Entries> DeviceReplica::with_steps(const PlacedEntries& entries, std::span<const compress::StepRun> runs,
                                          std::int32_t factor) {
  RUMOR_CHECK(entries.count == 0 || (!runs.empty() && runs.back().first + runs.back().count == entries.count));
  std::vector<StepSpan> spans;
  for (const compress::StepRun& run : runs)
    spans.push_back({run.first, static_cast<std::uint32_t>(run.step) * static_cast<std::uint32_t>(factor)});
  if (auto room = steps_.make_room(*gpu_, spans.size(), "steps of an update"); !room) return room.error();
  steps_.write(spans.data(), spans.size());
  return Entries{entries.index, entries.negative, entries.count, steps_.data(),
                 static_cast<std::uint32_t>(spans.size())};
}

Result<void> DeviceReplica::add(const PlacedEntries& entries, std::span<const compress::StepRun> runs,
                                std::int32_t factor) {
  if (entries.count == 0 || factor == 0) return {};
  const Result<Entries> added = with_steps(entries, runs, factor);
  if (!added) return added.error();
  gpu_->table().apply(gpu_->device(), &*added, weights_.data(), floats_.data(), unit_);
  return {};
}

Result<std::uint64_t> DeviceReplica::fingerprint(std::uint64_t seed) const {
  const GpuTable& table = gpu_->table();
  table.fill(gpu_->device(), lanes_.data(), 0, lanes_.bytes());
  table.fingerprint_weights(gpu_->device(), weights_.data(), static_cast<std::uint32_t>(weights_.size()), seed,
                            lanes_.data());
  return read_lanes();
}

Result<std::uint64_t> DeviceReplica::fingerprint_of(const PlacedEntries& entries,
                                                    std::span<const compress::StepRun> runs, std::int32_t factor,
                                                    std::uint64_t seed) {
  if (entries.count == 0 || factor == 0) return std::uint64_t{0};
  const Result<Entries> added = with_steps(entries, runs, factor);
  if (!added) return added.error();
  gpu_->table().fill(gpu_->device(), lanes_.data(), 0, lanes_.bytes());
  gpu_->table().fingerprint_entries(gpu_->device(), &*added, seed, lanes_.data());
  return read_lanes();
}

Result<std::uint64_t> DeviceReplica::read_lanes() const {
  std::uint32_t lanes[2];
  if (auto read = lanes_.read(lanes, 2); !read) return read.error();
  return (std::uint64_t{lanes[1]} << 32) | lanes[0];
}

}  // namespace rumor::gpu
