// Adds entries to the weights and to the fingerprint.
//
// The entries of one update are at different positions, so plain reads and writes suffice. Fingerprints are sums mod
// 2^32, which do not depend on the order, so blocks add theirs with atomic additions.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

constexpr unsigned apply_threads = 256;

// The step of entry e: that of the last span that begins at e or before.
__device__ __forceinline__ std::uint32_t step_of(const Entries& entries, std::uint64_t e) {
  std::uint32_t low = 0, high = entries.step_count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (entries.steps[middle].first <= e)
      low = middle;
    else
      high = middle;
  }
  return entries.steps[low].step;
}

// The amount that entry e adds to its weight, mod 2^32.
__device__ __forceinline__ std::uint32_t change_of(const Entries& entries, std::uint64_t e) {
  const std::uint32_t minus = entries.negative[e];
  return (step_of(entries, e) ^ (0 - minus)) + minus;
}

__global__ void __launch_bounds__(apply_threads)
    apply_entries(Entries entries, std::int32_t* weights, float* view, float unit) {
  for (std::uint64_t e = grid_thread(); e < entries.count; e += grid_threads()) {
    const std::uint32_t i = entries.index[e];
    const auto weight = static_cast<std::int32_t>(static_cast<std::uint32_t>(weights[i]) + change_of(entries, e));
    weights[i] = weight;
    if (view != nullptr) view[i] = static_cast<float>(weight) * unit;
  }
}

__global__ void __launch_bounds__(apply_threads)
    show_weights(const std::int32_t* weights, std::uint32_t params, float* view, float unit) {
  for (std::uint64_t i = grid_thread(); i < params; i += grid_threads())
    view[i] = static_cast<float>(weights[i]) * unit;
}

// splitmix64, as in runtime/base/prng.h, and odd in both halves, as runtime/replica/fingerprint.h requires.
__device__ __forceinline__ std::uint64_t coefficients(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = seed + i + 0x9e37'79b9'7f4a'7c15u;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
  return (x ^ (x >> 31)) | 0x0000'0001'0000'0001u;
}

// Called by whole warps: adds each thread's values to the lanes.
__device__ __forceinline__ void add_lanes(std::uint32_t low, std::uint32_t high, std::uint32_t* lanes) {
  low = warp_sum(low);
  high = warp_sum(high);
  if (lane_of_thread() != 0) return;
  atomicAdd(&lanes[0], low);
  atomicAdd(&lanes[1], high);
}

__global__ void __launch_bounds__(apply_threads)
    add_entry_fingerprints(Entries entries, std::uint64_t seed, std::uint32_t* lanes) {
  std::uint32_t low = 0, high = 0;
  for (std::uint64_t e = grid_thread(); e < entries.count; e += grid_threads()) {
    const std::uint64_t r = coefficients(seed, entries.index[e]);
    const std::uint32_t change = change_of(entries, e);
    low += change * static_cast<std::uint32_t>(r);
    high += change * static_cast<std::uint32_t>(r >> 32);
  }
  add_lanes(low, high, lanes);
}

__global__ void __launch_bounds__(apply_threads)
    add_weight_fingerprints(const std::int32_t* weights, std::uint32_t params, std::uint64_t seed,
                            std::uint32_t* lanes) {
  std::uint32_t low = 0, high = 0;
  for (std::uint64_t i = grid_thread(); i < params; i += grid_threads()) {
    const std::uint64_t r = coefficients(seed, i);
    const auto weight = static_cast<std::uint32_t>(weights[i]);
    low += weight * static_cast<std::uint32_t>(r);
    high += weight * static_cast<std::uint32_t>(r >> 32);
  }
  add_lanes(low, high, lanes);
}

}  // namespace rumor::gpu
