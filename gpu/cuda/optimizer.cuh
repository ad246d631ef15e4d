// The kernels of an optimizer's step, besides those of scans and products: the norm of a gradient, Muon's, and the copy
// of the weights that a step of several mini-batches sees.
//
// A sum of squares is added in doubles and in one order for every grid. A block takes square_stretch values, a thread
// every step_threads-th of them, joined in halves. Then one block adds the sums of the stretches in the same way. In
// all other kernels a value depends on no other thread.
#pragma once

#include "gpu/cuda/eights.cuh"
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

// A block a total. Joins the sums of `count` stretches.
__global__ void __launch_bounds__(step_threads)
    join_squares(std::uint64_t count, const double* partial, double* total) {
  __shared__ double warps[step_threads / warp_threads];
  const double* const mine = partial + blockIdx.x * count;
  double sum = 0;
  for (std::uint64_t i = threadIdx.x; i < count; i += step_threads) sum += mine[i];
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) total[blockIdx.x] = sum;
}

// A block takes a stretch of a matrix of a group, counted without gaps, a thread every step_threads-th number.
struct GroupStretch {
  std::uint32_t numbers;  // of a matrix: there are fewer than 2^32 parameters
  std::uint32_t matrix, first, count;

  __device__ explicit GroupStretch(const MatrixGroup& group) {
    numbers = group.layout.rows * group.layout.columns;
    const std::uint32_t stretches = (numbers - 1) / square_stretch + 1;
    matrix = blockIdx.x / stretches;
    first = blockIdx.x % stretches * square_stretch;
    count = numbers - first < square_stretch ? numbers - first : square_stretch;
  }
  // Calls one(place in the group, place in its matrix without gaps) for the numbers of this thread.
  template <class One>
  __device__ __forceinline__ void each(const MatrixGroup& group, const One& one) const {
    for (std::uint32_t i = threadIdx.x; i < count; i += step_threads) {
      const std::uint32_t packed = first + i, row = packed / group.layout.columns;
      const std::uint32_t column = packed - row * group.layout.columns;
      one(matrix * group.step + std::uint64_t{row} * group.layout.stride + column, packed);
    }
  }
};

__global__ void __launch_bounds__(step_threads)
    sum_group_squares(MatrixGroup group, const float* x, double* partial) {
  __shared__ double warps[step_threads / warp_threads];
  double sum = 0;
  GroupStretch(group).each(group, [&](std::uint64_t at, std::uint32_t) {
    const double value = static_cast<double>(x[at]);
    sum += value * value;
  });
  sum = block_sum(sum, warps);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(step_threads) scale_values(std::uint64_t count, float factor, float* x) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) x[i] = x[i] * factor;
}

__global__ void __launch_bounds__(step_threads)
    look_ahead_group(MatrixGroup group, float momentum, float* gradient, float* kept) {
  GroupStretch(group).each(group, [&](std::uint64_t at, std::uint32_t) {
    const float own = gradient[at], next = momentum * kept[at] + own;
    kept[at] = next;
    gradient[at] = own + momentum * next;
  });
}

template <class Number>
__global__ void __launch_bounds__(step_threads)
    scale_group(MatrixGroup group, double norm_min, const double* squares, const float* x, Number* y) {
  const GroupStretch stretch(group);
  const double norm = sqrt(squares[stretch.matrix]);
  const float scale = norm < norm_min ? 0.0f : static_cast<float>(1 / norm);
  Number* const to = y + std::uint64_t{stretch.matrix} * stretch.numbers;
  stretch.each(group, [&](std::uint64_t at, std::uint32_t packed) { put_number(to[packed], x[at] * scale); });
}

// `count`: the numbers of all matrices, fewer than 2^32. y may be `square`.
template <class Number>
__global__ void __launch_bounds__(step_threads)
    add_powers(std::uint64_t count, std::uint32_t order, Quadratic numbers, const float* gram, const float* square,
               Number* y) {
  const bool aligned = is_aligned(gram, 16) && is_aligned(square, 16) && is_aligned(y, 16);
  for (std::uint64_t at = eight * grid_thread(); at < count; at += eight * grid_threads()) {
    const Eight once = load_eight(gram, at, count, aligned, 0.0f), twice = load_eight(square, at, count, aligned, 0.0f);
    const std::uint32_t row = static_cast<std::uint32_t>(at) / order;
    std::uint32_t column = static_cast<std::uint32_t>(at) - row * order, diagonal = row % order;
    Eight all;
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) {
      const float sum = numbers.b * once.v[i] + numbers.c * twice.v[i];
      all.v[i] = column == diagonal ? sum + numbers.a : sum;
      if (++column == order) {  // the next row
        column = 0;
        diagonal = diagonal + 1 == order ? 0 : diagonal + 1;
      }
    }
    store_eight(y, at, count, aligned, all);
  }
}

__global__ void __launch_bounds__(step_threads)
    add_share_of_change(std::uint64_t count, const float* from, float factor, const float* change, float* to) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) to[i] = from[i] + factor * change[i];
}

}  // namespace rumor::gpu
