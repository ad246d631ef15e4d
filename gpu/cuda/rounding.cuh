// Rounds floats to bfloat16, to the nearest, ties to even: the upper half of a float. Also the functions by which
// kernels read and write numbers of either type.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

__device__ __forceinline__ Bf16 rounded_bf16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  if (magnitude_bits(value) > infinity_bits) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};  // NaN stays NaN
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// Rounds two numbers and packs them into a word.
__device__ __forceinline__ std::uint32_t two_bf16(float low, float high) {
#if defined(__CUDACC__)
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return rounded_bf16(low).bits | std::uint32_t{rounded_bf16(high).bits} << 16;
#endif
}

__device__ __forceinline__ float number_of(float value) {
  return value;
}
__device__ __forceinline__ float number_of(Bf16 value) {
  return __uint_as_float(std::uint32_t{value.bits} << 16);
}
__device__ __forceinline__ void put_number(float& to, float value) {
  to = value;
}
__device__ __forceinline__ void put_number(Bf16& to, float value) {
  to = rounded_bf16(value);
}

// Returns the numbers of an argument, which must have this type.
template <class Number>
__host__ __device__ __forceinline__ const Number* those_of(const ConstNumbers& numbers) {
  return static_cast<const Number*>(numbers.at);
}
template <class Number>
__host__ __device__ __forceinline__ Number* those_of(const Numbers& numbers) {
  return static_cast<Number*>(numbers.at);
}

}  // namespace rumor::gpu
