// Emulation: CUDA's names for a plain C++ compiler, so that the kernels of gpu/cuda are run, and proven, without a GPU.
//
// A grid is run block by block on the caller's thread; the threads of a block are fibers, which change places where
// CUDA threads wait for each other: at __syncthreads() and in warp instructions. What makes kernels wrong on a GPU is
// found here as far as it can be:
//   - the order of blocks and of threads between two barriers is drawn from Order::seed, so a missing barrier shows as
//     results that differ (seed 0: ascending). Fibers change places at no other point, so a race within a stretch of
//     code without barrier is not tried out in every order: compute-sanitizer's racecheck does that, on a GPU;
//   - a thread that does not arrive where others wait (an early return, a branch that splits a warp) is an error that
//     says so, where a GPU would hang or do anything;
//   - __shared__ memory holds what the last block left, and address sanitizers see accesses outside of any array.
// Only what the kernels use is here: one-dimensional grids, whole warps, the functions below.
//
// Included before any kernel, after all headers of the library. Thread: one caller at a time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace rumor::gpu::emulation {

struct Extent {
  unsigned x = 1;
};

// Where the running thread is.
extern Extent thread_index, block_index, block_extent, grid_extent;

struct Order {
  std::uint64_t seed = 0;
};

// Runs kernel() once for each thread of the grid. Throws std::runtime_error when threads wait for others that never
// come. Requires: threads a multiple of 32 or less than 32, at most 1024; where it is less, kernel uses no warp
// instruction.
void run_grid(std::uint64_t blocks, unsigned threads, Order order, const std::function<void()>& kernel);

// All threads of the block, or of the warp, wait here for each other. exchange() returns what each lane has handed in.
enum class Meeting : std::uint8_t { block, ballot, shuffle, matrix };
void wait_for_block();
const std::uint64_t* exchange(Meeting kind, std::uint64_t value);

template <class T>
T shuffled(T value, unsigned lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::uint64_t* lanes = exchange(Meeting::shuffle, std::bit_cast<Bits>(value));
  return std::bit_cast<T>(static_cast<Bits>(lanes[lane]));
}

}  // namespace rumor::gpu::emulation

#define threadIdx ::rumor::gpu::emulation::thread_index
#define blockIdx ::rumor::gpu::emulation::block_index
#define blockDim ::rumor::gpu::emulation::block_extent
#define gridDim ::rumor::gpu::emulation::grid_extent
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct float4 {
  float x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

inline void __syncthreads() {
  ::rumor::gpu::emulation::wait_for_block();
}

inline unsigned __ballot_sync(unsigned, int predicate) {
  const std::uint64_t* lanes =
      ::rumor::gpu::emulation::exchange(::rumor::gpu::emulation::Meeting::ballot, predicate != 0 ? 1 : 0);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(lanes[lane]) << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return ::rumor::gpu::emulation::shuffled(value, lane >= distance ? lane - distance : lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return ::rumor::gpu::emulation::shuffled(value, (threadIdx.x % 32) ^ mask);
}

// One fiber runs at a time, so a plain read and write is atomic.
inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to = before + value;
  return before;
}
inline unsigned atomicOr(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to = before | value;
  return before;
}
inline unsigned atomicMin(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to = value < before ? value : before;
  return before;
}

inline int __popc(unsigned value) {
  return std::popcount(value);
}
inline int __ffs(unsigned value) {
  return value == 0 ? 0 : std::countr_zero(value) + 1;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((std::uint64_t{high} << 32) | low) >> (shift & 31));
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
