// Functions that all kernels use: sums over a warp and a block, bits of a stream, magnitudes.
//
// Kernels include no CUDA header: nvcc provides the names they use, and tests/gpu/emulation/emulation.h provides them
// to a plain C++ compiler. Kernels use a small part of the language: one-dimensional grids, whole warps in every warp
// instruction, __shared__ memory of fixed size, and no block that waits for another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define RUMOR_UNROLL _Pragma("unroll")
#else
#define RUMOR_UNROLL
#endif

namespace rumor::gpu {

constexpr unsigned warp_threads = 32;
constexpr unsigned whole_warp = 0xffff'ffff;
constexpr std::uint32_t magnitude_mask = 0x7fff'ffff;
constexpr std::uint32_t infinity_bits = 0x7f80'0000;

__device__ __forceinline__ unsigned lane_of_thread() {
  return threadIdx.x % warp_threads;
}
__device__ __forceinline__ unsigned warp_of_thread() {
  return threadIdx.x / warp_threads;
}
__device__ __forceinline__ unsigned lanes_below() {
  return (1u << lane_of_thread()) - 1;
}

__device__ __forceinline__ std::uint32_t magnitude_bits(float value) {
  return __float_as_uint(value) & magnitude_mask;
}

__device__ __forceinline__ bool is_aligned(const void* pointer, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Thread number in the grid, and number of threads of the grid: 64 bits, so that no product overflows.
__device__ __forceinline__ std::uint64_t grid_thread() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::uint64_t grid_threads() {
  return std::uint64_t{gridDim.x} * blockDim.x;
}

// Called by whole warps. The sum of `value` over the lanes up to and including this one.
template <class T>
__device__ __forceinline__ T warp_inclusive(T value) {
  for (unsigned distance = 1; distance < warp_threads; distance *= 2) {
    const T before = __shfl_up_sync(whole_warp, value, distance);
    if (lane_of_thread() >= distance) value += before;
  }
  return value;
}

// Called by whole warps. The sum over all lanes, in every lane.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (unsigned distance = warp_threads / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(whole_warp, value, distance);
  return value;
}

// Called by whole blocks of `threads`: the sum over the threads before this one, and over all threads. `sums` is shared
// memory for this call alone, one word per warp; the caller may reuse it as soon as this returns.
template <unsigned threads, class T>
__device__ __forceinline__ T block_exclusive(T value, T* sums, T& total) {
  constexpr unsigned warps = threads / warp_threads;
  static_assert(threads % warp_threads == 0 && warps <= warp_threads, "one warp adds up what the warps have");
  const unsigned lane = lane_of_thread(), warp = warp_of_thread();
  const T inclusive = warp_inclusive(value);
  if (lane == warp_threads - 1) sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const T all = warp_inclusive(lane < warps ? sums[lane] : T{0});
    if (lane < warps) sums[lane] = all;
  }
  __syncthreads();
  total = sums[warps - 1];
  const T before = warp == 0 ? T{0} : sums[warp - 1];
  __syncthreads();
  return before + inclusive - value;
}

// ---- Bit streams: bit 0 of a byte comes first, which on a little-endian machine is bit 0 of a word.

// Reads `width` bits, at most 32, from bit `at` on. May read the word after the one that holds the last bit.
__device__ __forceinline__ std::uint32_t bits_at(const std::uint32_t* words, std::uint64_t at, unsigned width) {
  const std::uint32_t* word = words + (at >> 5);
  const std::uint32_t bits = __funnelshift_r(word[0], word[1], static_cast<unsigned>(at & 31));
  return width == 32 ? bits : bits & ((1u << width) - 1);
}

// Sets the bits of `value`, at most 32 wide, from bit `at` on, where they are zero. Other threads may write the same
// words.
__device__ __forceinline__ void or_bits(std::uint32_t* words, std::uint64_t at, std::uint32_t value) {
  if (value == 0) return;
  std::uint32_t* word = words + (at >> 5);
  const unsigned shift = static_cast<unsigned>(at & 31);
  atomicOr(word, value << shift);
  if (shift != 0 && (value >> (32 - shift)) != 0) atomicOr(word + 1, value >> (32 - shift));
}

}  // namespace rumor::gpu
