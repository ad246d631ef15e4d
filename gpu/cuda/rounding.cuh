// Floats to bfloat16, to the nearest, ties to even: the upper half of a float.
#pragma once

#include "gpu/cuda/common.cuh"

namespace rumor::gpu {

constexpr unsigned rounding_threads = 256;

__device__ __forceinline__ std::uint16_t rounded_bf16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  if (magnitude_bits(value) > infinity_bits) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // a NaN stays one
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__global__ void __launch_bounds__(rounding_threads)
    round_to_bf16(std::uint64_t count, const float* from, std::uint16_t* to) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) to[i] = rounded_bf16(from[i]);
}

}  // namespace rumor::gpu
