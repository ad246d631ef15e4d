// Softmax and cross-entropy of rows of logits, in place. A block takes a row. A row that fits stays in the registers of
// the block, which computes the maximum, the sum of exponentials and the gradient from there. It reads another row once
// for maximum and sum together, and once more if the gradient replaces the logits. Sums are joined in one order, for a
// width and an alignment: eight neighbours, a thread's stride, the lanes of a warp, the warps.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/cuda/eights.cuh"
#include "gpu/cuda/math.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned entropy_threads = 256;
constexpr unsigned entropy_warps = entropy_threads / warp_threads;
constexpr unsigned entropy_blocks_at_once = 2;  // one computes while the other waits for memory
constexpr unsigned total_threads = 256;

// The sum over the columns seen so far of e^(x - top). Before the first column, top is minus infinity.
struct TopSum {
  float top, sum;
};

// The sum for another top. Equal tops are handled first: infinity minus infinity is NaN.
__device__ __forceinline__ float sum_from(TopSum part, float top) {
  return part.top == top ? part.sum : part.sum * quick_exponential(part.top - top);
}

// e^(x - top). Minus infinity gives 0 even if it is the top: a logit beyond the end counts for nothing.
__device__ __forceinline__ float share_of(float value, float top) {
  return value == -__uint_as_float(infinity_bits) ? 0.0f : value == top ? 1.0f : quick_exponential(value - top);
}

__device__ __forceinline__ TopSum join(TopSum a, TopSum b) {
  const float top = b.top > a.top ? b.top : a.top;
  return {top, sum_from(a, top) + sum_from(b, top)};
}

// Called by whole warps: joins the values of all lanes, in each of them. Joining is commutative to the bit.
__device__ __forceinline__ TopSum warp_join(TopSum value) {
  for (unsigned distance = warp_threads / 2; distance > 0; distance /= 2) {
    const float top = __shfl_xor_sync(whole_warp, value.top, distance);
    const float sum = __shfl_xor_sync(whole_warp, value.sum, distance);
    value = join(value, {top, sum});
  }
  return value;
}

// Makes the gap behind a row of `columns` numbers zero, up to the next row.
template <class Number>
__device__ __forceinline__ void clear_gap(Number* row, std::uint32_t columns, std::size_t stride) {
  for (std::size_t at = columns + std::size_t{threadIdx.x}; at < stride; at += entropy_threads)
    put_number(row[at], 0.0f);
}

template <class Number>
__global__ void __launch_bounds__(entropy_threads) entropy_each_row(CrossEntropyArgs args) {
  __shared__ TopSum warps[entropy_warps];
  const std::uint32_t columns = args.size.columns;
  const std::size_t stride = args.stride != 0 ? args.stride : columns;
  Number* x = those_of<Number>(args.x) + blockIdx.x * stride;
  const std::uint32_t target = args.target[blockIdx.x];
  const bool aligned = is_aligned(x, 16);
  const float wanted = number_of(x[target]), none = -__uint_as_float(infinity_bits);
  TopSum own = {none, 0.0f};
  for (std::uint64_t at = threadIdx.x * eight; at < columns; at += entropy_threads * eight) {
    const Eight all = load_eight(x, at, columns, aligned, none);
    float top = own.top;
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) top = all.v[i] > top ? all.v[i] : top;
    own = {top, sum_from(own, top)};
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) own.sum += share_of(all.v[i], top);
  }
  own = warp_join(own);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = own;
  __syncthreads();  // also: all threads have read the logit of the target
  TopSum all = warps[0];
  for (unsigned w = 1; w < entropy_warps; ++w) all = join(all, warps[w]);
  if (threadIdx.x == 0) args.loss[blockIdx.x] = logf(all.sum) + (all.top - wanted);
  if (!(args.share > 0.0f)) return;
  clear_gap(x, columns, stride);
  const float factor = args.share / all.sum;
  for (std::uint64_t at = threadIdx.x * eight; at < columns; at += entropy_threads * eight) {
    Eight change = load_eight(x, at, columns, aligned, 0.0f);
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) {
      const float pull = quick_exponential(change.v[i] - all.top) * factor;
      change.v[i] = at + i == target ? pull - args.share : pull;
    }
    store_eight(x, at, columns, aligned, change);
  }
}

// ---- Rows in registers. Each of them begins at a multiple of 16 bytes.

// Called by whole blocks: the largest value, NaNs passed over; the sum, in one order. warps: shared, for one call.
__device__ __forceinline__ float block_top(float value, float* warps) {
  for (unsigned distance = warp_threads / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(whole_warp, value, distance);
    value = other > value ? other : value;
  }
  if (lane_of_thread() == 0) warps[warp_of_thread()] = value;
  __syncthreads();
  for (unsigned w = 0; w < entropy_warps; ++w) value = warps[w] > value ? warps[w] : value;
  return value;
}
__device__ __forceinline__ float block_sum(float value, float* warps) {
  value = warp_sum(value);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = value;
  __syncthreads();
  value = warps[0];
  for (unsigned w = 1; w < entropy_warps; ++w) value += warps[w];
  return value;
}

// factor * e^(x - top), of eight numbers.
__device__ __forceinline__ Eight shares_of(const Eight& x, float top, float factor) {
  Eight shares;
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i) shares.v[i] = quick_exponential(x.v[i] - top) * factor;
  return shares;
}
__device__ __forceinline__ float sum_of(const Eight& x) {
  return ((x.v[0] + x.v[1]) + (x.v[2] + x.v[3])) + ((x.v[4] + x.v[5]) + (x.v[6] + x.v[7]));
}

// A part of the row that one thread has: `held` whole eights, and at most one of the numbers behind the last of them.
// Minus infinity takes the place of numbers that are not there.
template <class Number, unsigned held>
struct HeldPart {
  typename Raw<Number>::Type raw[held];
  std::uint32_t eights, rest;  // whole eights of the row, numbers behind them
  float last;
};
template <class Number, unsigned held>
__device__ __forceinline__ HeldPart<Number, held> load_part(const Number* x, std::uint32_t columns, Number none) {
  HeldPart<Number, held> part;
  part.eights = columns / eight;
  part.rest = columns % eight;
  RUMOR_UNROLL
  for (unsigned k = 0; k < held; ++k) {
    const std::uint32_t at = threadIdx.x + k * entropy_threads;
    part.raw[k] = at < part.eights ? load_whole_raw(x + at * eight) : repeated_raw(none);
  }
  part.last = number_of(threadIdx.x < part.rest ? x[part.eights * eight + threadIdx.x] : none);
  return part;
}

// The widest row that the registers of a block have room for.
template <unsigned held>
constexpr std::uint32_t held_columns = held * entropy_threads * eight;

template <class Number, unsigned held>
__global__ void __launch_bounds__(entropy_threads, entropy_blocks_at_once)
    entropy_each_held_row(CrossEntropyArgs args) {
  __shared__ float tops[entropy_warps], sums[entropy_warps];
  const std::uint32_t columns = args.size.columns;
  const std::size_t stride = args.stride != 0 ? args.stride : columns;
  Number* x = those_of<Number>(args.x) + blockIdx.x * stride;
  const std::uint32_t target = args.target[blockIdx.x];
  Number none;
  put_number(none, -__uint_as_float(infinity_bits));
  HeldPart<Number, held> part = load_part<Number, held>(x, columns, none);
  const float wanted = number_of(x[target]);
  float top = part.last;
  RUMOR_UNROLL
  for (unsigned k = 0; k < held; ++k) {
    const Eight all = eight_of(part.raw[k]);
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) top = all.v[i] > top ? all.v[i] : top;
    renew(part.raw[k]);
  }
  top = block_top(top, tops);  // waits until all threads have read the logit of the target, too
  float sum = quick_exponential(part.last - top);
  RUMOR_UNROLL
  for (unsigned k = 0; k < held; ++k) {
    sum += sum_of(shares_of(eight_of(part.raw[k]), top, 1.0f));
    renew(part.raw[k]);
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) args.loss[blockIdx.x] = logf(sum) + (top - wanted);
  if (!(args.share > 0.0f)) return;
  clear_gap(x, columns, stride);
  const float factor = args.share / sum;
  RUMOR_UNROLL
  for (unsigned k = 0; k < held; ++k) {
    const std::uint32_t at = threadIdx.x + k * entropy_threads;
    if (at < part.eights) store_whole_eight(x + at * eight, shares_of(eight_of(part.raw[k]), top, factor));
  }
  if (threadIdx.x < part.rest)
    put_number(x[part.eights * eight + threadIdx.x], quick_exponential(part.last - top) * factor);
  // The thread that has written the target's share writes it again.
  const std::uint32_t its_eight = target / eight;
  if (threadIdx.x == (its_eight < part.eights ? its_eight % entropy_threads : target % eight))
    put_number(x[target], quick_exponential(wanted - top) * factor - args.share);
}

// One block. Adds up the losses of the rows.
__global__ void __launch_bounds__(total_threads) add_losses(std::uint32_t rows, const float* loss, double* total) {
  __shared__ double warps[total_threads / warp_threads];
  double sum = 0;
  for (std::uint32_t r = threadIdx.x; r < rows; r += total_threads) sum += static_cast<double>(loss[r]);
  sum = warp_sum(sum);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned w = 1; w < total_threads / warp_threads; ++w) sum += warps[w];
  *total = sum;
}

}  // namespace rumor::gpu
