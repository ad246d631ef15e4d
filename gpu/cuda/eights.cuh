// Eight neighbouring numbers at a time, floats or bfloat16: loads and stores of 16 bytes if the arrays are aligned for
// them. Alignment does not change which thread has which numbers, so results do not depend on it.
#pragma once

#include "gpu/cuda/rounding.cuh"

namespace rumor::gpu {

constexpr unsigned eight = 8;

struct Eight {
  float v[eight];
};

__device__ __forceinline__ Eight load_whole_eight(const float* from) {
  const float4 low = reinterpret_cast<const float4*>(from)[0], high = reinterpret_cast<const float4*>(from)[1];
  return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}
// Four words are eight bfloat16 numbers.
__device__ __forceinline__ Eight eight_of(const uint4& all) {
  const std::uint32_t word[4] = {all.x, all.y, all.z, all.w};
  Eight loaded;
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i)
    loaded.v[i] = __uint_as_float(i % 2 == 0 ? word[i / 2] << 16 : word[i / 2] & 0xffff'0000);
  return loaded;
}
__device__ __forceinline__ Eight load_whole_eight(const Bf16* from) {
  return eight_of(*reinterpret_cast<const uint4*>(from));
}
__device__ __forceinline__ void store_whole_eight(float* to, const Eight& all) {
  reinterpret_cast<float4*>(to)[0] = make_float4(all.v[0], all.v[1], all.v[2], all.v[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(all.v[4], all.v[5], all.v[6], all.v[7]);
}
__device__ __forceinline__ void store_whole_eight(Bf16* to, const Eight& all) {
  *reinterpret_cast<uint4*>(to) = {two_bf16(all.v[0], all.v[1]), two_bf16(all.v[2], all.v[3]),
                                   two_bf16(all.v[4], all.v[5]), two_bf16(all.v[6], all.v[7])};
}

// Eight numbers as they lie in memory, to keep them in few registers: Raw<Number>::Type. load_whole_raw() loads them,
// repeated_raw() has one number eight times, eight_of() converts them.
template <class Number>
struct Raw {
  using Type = Eight;
};
template <>
struct Raw<Bf16> {
  using Type = uint4;
};
__device__ __forceinline__ Eight load_whole_raw(const float* from) {
  return load_whole_eight(from);
}
__device__ __forceinline__ uint4 load_whole_raw(const Bf16* from) {
  return *reinterpret_cast<const uint4*>(from);
}
__device__ __forceinline__ Eight repeated_raw(float value) {
  return {{value, value, value, value, value, value, value, value}};
}
__device__ __forceinline__ uint4 repeated_raw(Bf16 value) {
  const std::uint32_t two = value.bits * 0x1'0001u;
  return {two, two, two, two};
}
__device__ __forceinline__ const Eight& eight_of(const Eight& all) {
  return all;
}
// The compiler takes these numbers for new ones: it computes again what it has computed from them, instead of keeping
// the results in registers.
__device__ __forceinline__ void renew(Eight& all) {
#if defined(__CUDACC__)
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i) asm volatile("" : "+f"(all.v[i]));
#else
  static_cast<void>(all);
#endif
}
__device__ __forceinline__ void renew(uint4& all) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(all.x), "+r"(all.y), "+r"(all.z), "+r"(all.w));
#else
  static_cast<void>(all);
#endif
}

// Loads the numbers from number `at` on, a multiple of eight, of `count`; `rest` replaces those beyond the end.
// aligned: the array begins at a multiple of 16 bytes.
template <class Number>
__device__ __forceinline__ Eight load_eight(const Number* from, std::uint64_t at, std::uint64_t count, bool aligned,
                                            float rest) {
  if (aligned && count - at >= eight) return load_whole_eight(from + at);
  Eight loaded;
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i) loaded.v[i] = at + i < count ? number_of(from[at + i]) : rest;
  return loaded;
}
template <class Number>
__device__ __forceinline__ void store_eight(Number* to, std::uint64_t at, std::uint64_t count, bool aligned,
                                            const Eight& all) {
  if (aligned && count - at >= eight) return store_whole_eight(to + at, all);
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i)
    if (at + i < count) put_number(to[at + i], all.v[i]);
}

}  // namespace rumor::gpu
