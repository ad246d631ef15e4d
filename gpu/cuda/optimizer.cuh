// The kernels of an optimizer's step, besides those of scans and products: the norm of a gradient, Muon's, and the copy
// of the weights that a step of several mini-batches sees.
//
// A sum of squares is added in doubles and in one order for every grid. A block takes square_stretch values, a thread
// every step_threads-th of them, joined in halves. Then one block adds the sums of the stretches in the same way. In
// all other kernels a value depends on no other thread.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/model_table.h"
#include "gpu/device/optimizer_table.h"

namespace rumor::gpu {

constexpr unsigned step_threads = 256;

// Called by whole blocks: the sum over the threads, in the first thread.
__device__ __forceinline__ double block_sum(double value, double* warps) {
  value = warp_sum(value);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = value;
  __syncthreads();
  if (threadIdx.x != 0) return value;
  for (unsigned w = 1; w < step_threads / warp_threads; ++w) value += warps[w];
  return value;
}

__global__ void __launch_bounds__(step_threads) sum_squares(std::uint64_t count, const float* x, double* partial) {
  __shared__ double warps[step_threads / warp_threads];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * square_stretch;
  const std::uint64_t end = first + square_stretch < count ? first + square_stretch : count;
  double sum = 0;
  for (std::uint64_t i = first + threadIdx.x; i < end; i += step_threads) {
    const double value = static_cast<double>(x[i]);
    sum += value * value;
  }
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// One block. Joins the sums of the stretches.
__global__ void __launch_bounds__(step_threads)
    join_squares(std::uint64_t count, const double* partial, double* total) {
  __shared__ double warps[step_threads / warp_threads];
  double sum = 0;
  for (std::uint64_t i = threadIdx.x; i < count; i += step_threads) sum += partial[i];
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void __launch_bounds__(step_threads) scale_values(std::uint64_t count, float factor, float* x) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) x[i] = x[i] * factor;
}

__global__ void __launch_bounds__(step_threads) look_ahead_rows(MatrixLayout size, float momentum,
                                                                const float* gradient, float* kept, float* ahead) {
  const std::uint64_t count = std::uint64_t{size.rows} * size.columns;
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const auto packed = static_cast<std::uint32_t>(i);  // there are fewer than 2^32 parameters
    const std::uint64_t at = std::uint64_t{packed / size.columns} * size.stride + packed % size.columns;
    const float own = gradient[at], next = momentum * kept[at] + own;
    kept[at] = next;
    ahead[i] = own + momentum * next;
  }
}

__global__ void __launch_bounds__(step_threads)
    scale_to_norm_one(std::uint64_t count, double norm_min, const double* squares, float* x) {
  const double norm = sqrt(*squares);
  const float scale = norm < norm_min ? 0.0f : static_cast<float>(1 / norm);
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) x[i] = x[i] * scale;
}

// The diagonal of a matrix without gaps is every (order + 1)-th value.
__global__ void __launch_bounds__(step_threads)
    add_powers(std::uint32_t order, Quadratic numbers, const float* gram, float* square) {
  const std::uint64_t count = std::uint64_t{order} * order;
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const float sum = numbers.b * gram[i] + numbers.c * square[i];
    square[i] = i % (std::uint64_t{order} + 1) == 0 ? sum + numbers.a : sum;
  }
}

__global__ void __launch_bounds__(step_threads)
    add_share_of_change(std::uint64_t count, const float* from, float factor, const float* change, float* to) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) to[i] = from[i] + factor * change[i];
}

}  // namespace rumor::gpu
