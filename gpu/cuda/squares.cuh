// The sum of squares of many values, in doubles and in one order for every grid. A block takes square_stretch values, a
// thread every square_threads-th of them, joined in halves. Then one block adds the sums of the stretches in the same
// way.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned square_threads = 256;

// Called by whole blocks: the sum over the threads, in the first thread.
__device__ __forceinline__ double block_sum(double value, double* warps) {
  value = warp_sum(value);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = value;
  __syncthreads();
  if (threadIdx.x != 0) return value;
  for (unsigned w = 1; w < square_threads / warp_threads; ++w) value += warps[w];
  return value;
}

__global__ void __launch_bounds__(square_threads) sum_squares(std::uint64_t count, const float* x, double* partial) {
  __shared__ double warps[square_threads / warp_threads];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * square_stretch;
  const std::uint64_t end = first + square_stretch < count ? first + square_stretch : count;
  double sum = 0;
  for (std::uint64_t i = first + threadIdx.x; i < end; i += square_threads) {
    const double value = static_cast<double>(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block. Joins the sums of the stretches.
__global__ void __launch_bounds__(square_threads)
    join_squares(std::uint64_t count, const double* partial, double* total) {
  __shared__ double warps[square_threads / warp_threads];
  double sum = 0;
  for (std::uint64_t i = threadIdx.x; i < count; i += square_threads) sum += partial[i];
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void __launch_bounds__(square_threads) scale_values(std::uint64_t count, float factor, float* x) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) x[i] = x[i] * factor;
}

}  // namespace rumor::gpu
