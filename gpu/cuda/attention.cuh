// Causal attention, forward and backward pass, without a matrix of context x context. Tiles of rows go through shared
// memory, and registers hold the running softmax statistics of each row (Dao et al. 2022, "FlashAttention"; running
// maximum: Milakov, Gimelshein 2018).
//
// Four neighbouring lanes share one row. Each lane has a quarter of its head: numbers 16 i + 4 lane + j, so the four
// lanes read sixteen neighbours at a time. A head is padded with zeros to four times `dims`. A block has look_rows rows
// of one head and loops over tiles of look_tile other rows. Tiles wholly above the diagonal are skipped.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/cuda/math.cuh"
#include "gpu/cuda/rounding.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned look_threads = 128;
constexpr unsigned look_lanes = 4;
constexpr unsigned look_rows = look_threads / look_lanes;
constexpr unsigned look_tile = 32;

// Rows of `dims * look_lanes` floats in shared memory.
template <unsigned dims>
struct alignas(16) LookTile {
  float row[look_tile][dims * look_lanes];
};

// The head of a block and the offsets of its parts.
struct LookHead {
  std::size_t query, output, statistics;  // offsets of the head's first row
  std::size_t key, value;                 // the same of its keys and values, which neighbours may share
  std::size_t stride, width;              // numbers from row to row of qkv and of y
  std::uint32_t first_row;                // of the block
};
// Heads of keys and values, and the query heads that share one of them.
__host__ __device__ __forceinline__ std::uint32_t key_heads(const AttentionArgs& args) {
  return args.kv_heads != 0 ? args.kv_heads : args.heads;
}
__device__ __forceinline__ std::uint32_t sharing_heads(const AttentionArgs& args) {
  return args.heads / key_heads(args);
}
// The order in which the blocks of a grid take rows: those with the most work first, so that none of them remains when
// all others are done. The last queries see the most keys; the first keys are seen by the most queries.
enum class LookOrder { last_rows_first, first_rows_first };

// For blocks of `rows` rows of queries of one head, or of keys of one head, which `sharing` heads of queries share. Of
// these heads it is the first.
template <LookOrder order>
__device__ __forceinline__ LookHead look_head(const AttentionArgs& args, std::uint32_t rows, std::uint32_t sharing) {
  const std::uint32_t in_row = args.heads / sharing, all = args.batch * in_row, number = blockIdx.x % all;
  const std::uint32_t batch = number / in_row, head = number % in_row * sharing;
  const std::uint32_t blocks = args.context / rows + (args.context % rows != 0 ? 1 : 0);
  const std::uint32_t turn = blockIdx.x / all;
  const std::size_t size = args.head_size, width = args.heads * size;
  const std::size_t stride = width + 2 * key_heads(args) * size, first = batch * std::size_t{args.context};
  LookHead at;
  at.first_row = (order == LookOrder::last_rows_first ? blocks - 1 - turn : turn) * rows;
  at.query = first * stride + head * size;
  at.key = first * stride + width + head / sharing_heads(args) * size;
  at.value = at.key + key_heads(args) * size;
  at.output = first * width + head * size;
  at.statistics = (std::size_t{batch} * args.heads + head) * args.context;
  at.stride = stride;
  at.width = width;
  return at;
}
// The next of the heads that share keys and values.
__device__ __forceinline__ void next_head(const AttentionArgs& args, LookHead& head) {
  head.query += args.head_size;
  head.output += args.head_size;
  head.statistics += args.context;
}
__device__ __forceinline__ std::uint32_t look_row(const LookHead& head) {
  return head.first_row + threadIdx.x / look_lanes;
}
__device__ __forceinline__ unsigned own_number(unsigned n) {
  return n / 4 * 16 + threadIdx.x % look_lanes * 4 + n % 4;
}
__device__ __forceinline__ float look_scale(const AttentionArgs& args) {
  return 1.0f / sqrtf(static_cast<float>(args.head_size));
}

// Loads rows first to first + look_tile - 1 of a head, `stride` floats apart; rows beyond the end become zeros.
template <unsigned dims>
__device__ __forceinline__ void load_tile(const AttentionArgs& args, const float* head, std::size_t stride,
                                          std::uint32_t first, LookTile<dims>& tile) {
  constexpr unsigned padded = dims * look_lanes;
  for (unsigned e = threadIdx.x; e < look_tile * padded; e += look_threads) {
    const unsigned row = e / padded, number = e % padded;
    const bool there = first + row < args.context && number < args.head_size;
    tile.row[row][number] = there ? head[(first + row) * stride + number] : 0.0f;
  }
}

// Loads this lane's part of row `row`.
template <unsigned dims>
__device__ __forceinline__ void load_own(const AttentionArgs& args, const float* head, std::size_t stride,
                                         std::uint32_t row, float (&own)[dims]) {
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) {
    const unsigned number = own_number(n);
    own[n] = row < args.context && number < args.head_size ? head[row * stride + number] : 0.0f;
  }
}
template <unsigned dims>
__device__ __forceinline__ void store_own(const AttentionArgs& args, const float (&own)[dims], std::size_t stride,
                                          std::uint32_t row, float* head) {
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) {
    const unsigned number = own_number(n);
    if (row < args.context && number < args.head_size) head[row * stride + number] = own[n];
  }
}

// Called by whole warps: the sum over the four lanes of a row, in each of them.
__device__ __forceinline__ float sum_of_four(float value) {
  value += __shfl_xor_sync(whole_warp, value, 1u);
  return value + __shfl_xor_sync(whole_warp, value, 2u);
}
template <unsigned dims>
__device__ __forceinline__ float row_product(const float (&own)[dims], const float* row) {
  float sum = 0;
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) sum = fmaf(own[n], row[own_number(n)], sum);
  return sum_of_four(sum);
}
template <unsigned dims>
__device__ __forceinline__ void add_row(float factor, const float* row, float (&sum)[dims]) {
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) sum[n] = fmaf(factor, row[own_number(n)], sum[n]);
}

template <unsigned dims>
__global__ void __launch_bounds__(look_threads) attend(AttentionArgs args) {
  __shared__ LookTile<dims> keys, values;
  const LookHead head = look_head<LookOrder::last_rows_first>(args, look_rows, 1);
  const std::size_t stride = head.stride;
  const float* qkv = those_of<float>(args.qkv);
  const float *key = qkv + head.key, *value = qkv + head.value;
  const std::uint32_t row = look_row(head), end = head.first_row + look_rows;
  const float scale = look_scale(args);
  float query[dims], sum[dims] = {}, top = -__uint_as_float(infinity_bits), weight = 0;
  load_own(args, qkv + head.query, stride, row, query);
  for (std::uint32_t first = 0; first < end && first < args.context; first += look_tile) {
    __syncthreads();  // all threads are done with the last tile
    load_tile(args, key, stride, first, keys);
    load_tile(args, value, stride, first, values);
    __syncthreads();
    float look[look_tile], new_top = top;
    RUMOR_UNROLL
    for (unsigned k = 0; k < look_tile; ++k) {
      const float product = row_product(query, keys.row[k]);
      look[k] = first + k <= row ? product : -__uint_as_float(infinity_bits);
      new_top = look[k] > new_top ? look[k] : new_top;
    }
    const float keep = exponential((top - new_top) * scale);
    weight *= keep;
    RUMOR_UNROLL
    for (unsigned n = 0; n < dims; ++n) sum[n] *= keep;
    RUMOR_UNROLL
    for (unsigned k = 0; k < look_tile; ++k) {
      const float share = exponential((look[k] - new_top) * scale);
      weight += share;
      add_row(share, values.row[k], sum);
    }
    top = new_top;
  }
  weight = 1.0f / weight;
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) sum[n] *= weight;
  store_own(args, sum, head.width, row, those_of<float>(args.y) + head.output);
  if (row >= args.context || threadIdx.x % look_lanes != 0) return;
  args.top[head.statistics + row] = top;
  args.weight[head.statistics + row] = weight;
}

// The attention of one row to another, and the gradient of their product.
struct Look {
  float share, move;
};
__device__ __forceinline__ Look look_back(bool sees, float product, float top, float weight, float scale, float change,
                                          float dot) {
  if (!sees) return {0.0f, 0.0f};
  const float share = exponential((product - top) * scale) * weight;
  return {share, share * (change - dot) * scale};
}

// Gradient of the queries: each lane takes a quarter of a row of queries and loops over tiles of keys.
template <unsigned dims>
__global__ void __launch_bounds__(look_threads) attend_back_queries(AttentionChange args) {
  __shared__ LookTile<dims> keys, values;
  const AttentionArgs& in = args.forward;
  const LookHead head = look_head<LookOrder::last_rows_first>(in, look_rows, 1);
  const std::size_t stride = head.stride;
  const float* qkv = those_of<float>(in.qkv);
  const float *key = qkv + head.key, *value = qkv + head.value;
  const std::uint32_t row = look_row(head), end = head.first_row + look_rows;
  const float scale = look_scale(in);
  const bool there = row < in.context;
  const float top = there ? in.top[head.statistics + row] : 0.0f;
  const float weight = there ? in.weight[head.statistics + row] : 0.0f;
  float query[dims], change[dims], sum[dims];
  load_own(in, those_of<float>(in.y) + head.output, head.width, row, sum);
  load_own(in, those_of<float>(args.change) + head.output, head.width, row, change);
  load_own(in, qkv + head.query, stride, row, query);
  float dot = 0;
  RUMOR_UNROLL
  for (unsigned n = 0; n < dims; ++n) {
    dot = fmaf(change[n], sum[n], dot);
    sum[n] = 0;
  }
  dot = sum_of_four(dot);
  for (std::uint32_t first = 0; first < end && first < in.context; first += look_tile) {
    __syncthreads();
    load_tile(in, key, stride, first, keys);
    load_tile(in, value, stride, first, values);
    __syncthreads();
    for (unsigned k = 0; k < look_tile; ++k) {
      const float product = row_product(query, keys.row[k]), change_of_share = row_product(change, values.row[k]);
      const bool sees = there && first + k <= row;
      add_row(look_back(sees, product, top, weight, scale, change_of_share, dot).move, keys.row[k], sum);
    }
  }
  store_own(in, sum, stride, row, those_of<float>(args.qkv_change) + head.query);
  if (there && threadIdx.x % look_lanes == 0) args.dot[head.statistics + row] = dot;
}

// Gradient of keys and values: each lane takes a quarter of a row and loops over tiles of the queries that see it, head
// after head of those that share it. Runs after attend_back_queries.
template <unsigned dims>
__global__ void __launch_bounds__(look_threads) attend_back_keys(AttentionChange args) {
  __shared__ LookTile<dims> queries, changes;
  __shared__ float top[look_tile], weight[look_tile], dot[look_tile];
  const AttentionArgs& in = args.forward;
  const std::uint32_t sharing = sharing_heads(in);
  LookHead head = look_head<LookOrder::first_rows_first>(in, look_rows, sharing);
  const std::size_t stride = head.stride;
  const std::uint32_t row = look_row(head);
  const float scale = look_scale(in);
  float key[dims], value[dims], key_sum[dims] = {}, value_sum[dims] = {};
  const float* qkv = those_of<float>(in.qkv);
  load_own(in, qkv + head.key, stride, row, key);
  load_own(in, qkv + head.value, stride, row, value);
  for (std::uint32_t shared = 0; shared < sharing; ++shared, next_head(in, head)) {
    for (std::uint32_t first = head.first_row / look_tile * look_tile; first < in.context; first += look_tile) {
      __syncthreads();
      load_tile(in, qkv + head.query, stride, first, queries);
      load_tile(in, those_of<float>(args.change) + head.output, head.width, first, changes);
      if (threadIdx.x < look_tile && first + threadIdx.x < in.context) {
        const std::size_t at = head.statistics + first + threadIdx.x;
        top[threadIdx.x] = in.top[at];
        weight[threadIdx.x] = in.weight[at];
        dot[threadIdx.x] = args.dot[at];
      }
      __syncthreads();
      for (unsigned q = 0; q < look_tile; ++q) {
        const float product = row_product(key, queries.row[q]), change_of_share = row_product(value, changes.row[q]);
        const bool sees = first + q >= row && first + q < in.context;
        const Look look = look_back(sees, product, top[q], weight[q], scale, change_of_share, dot[q]);
        add_row(look.share, changes.row[q], value_sum);
        add_row(look.move, queries.row[q], key_sum);
      }
    }
  }
  float* qkv_change = those_of<float>(args.qkv_change);
  store_own(in, key_sum, stride, row, qkv_change + head.key);
  store_own(in, value_sum, stride, row, qkv_change + head.value);
}

}  // namespace rumor::gpu
