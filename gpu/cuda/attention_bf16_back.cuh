// The backward pass of attention_bf16.cuh. As in attention.cuh, one kernel loops over keys for the gradient of queries,
// and one over queries for the gradients of keys and values. No two threads therefore add to the same number. This
// takes seven products; atomics would need five. The gradients of shares are rounded to bfloat16 for their products.
//
// A share of the softmax is 2^(product * scale - shift): `shift` holds the row's maximum and the logarithm of its
// weight. The factor 1 / sqrt(head_size) of the gradients is applied to their sums.
#pragma once

#include "gpu/cuda/attention_bf16.cuh"

namespace rumor::gpu {

// Values of a row of queries. Without such a row its shares are 0.
struct alignas(8) QueryFacts {
  float shift, dot;
};
struct alignas(16) FactsTile {
  QueryFacts row[bf16_tile_rows];
};
__device__ __forceinline__ QueryFacts no_facts() {
  return {__uint_as_float(infinity_bits), 0.0f};
}

// Computes the facts of the lane's two rows of a stripe, and stores them for the keys. `dot` is a row's gradient times
// its output.
template <unsigned size>
__device__ __forceinline__ void query_facts(const AttentionChange& args, const LookHead& head, std::uint32_t first_row,
                                            const Stripe<size>& change, float scale, QueryFacts (&facts)[2]) {
  const AttentionArgs& in = args.forward;
  Stripe<size> y;
  load_stripe(in, those_of<Bf16>(in.y) + head.output, head.width, first_row, y);
  RUMOR_UNROLL
  for (unsigned below = 0; below < 2; ++below) {
    float dot = 0;
    RUMOR_UNROLL
    for (unsigned i = 0; i < size / 16 * 2; ++i) {
      const std::uint32_t a = change.part[i / 2][i % 2 * 2 + below], b = y.part[i / 2][i % 2 * 2 + below];
      dot = fmaf(__uint_as_float(a << 16), __uint_as_float(b << 16), dot);
      dot = fmaf(__uint_as_float(a & 0xffff0000u), __uint_as_float(b & 0xffff0000u), dot);
    }
    dot = sum_of_four(dot);
    const std::uint32_t row = first_row + lane_row() + below * 8;
    const std::size_t at = head.statistics + row;
    const bool there = row < in.context;
    facts[below] = no_facts();
    if (!there) continue;
    facts[below] = {fmaf(in.top[at], scale, -approximate_log2(in.weight[at])), dot};
    if (lane_column() == 0) reinterpret_cast<QueryFacts*>(args.dot)[at] = facts[below];
  }
}

// The gradients of shares before the softmax, of two by two parts of a lane, in place of their products with queries.
// With `cut`, keys from `key` on are hidden from queries before them.
template <unsigned count>
__device__ __forceinline__ void moves_of_queries(bool cut, std::uint32_t row, std::uint32_t key, float scale,
                                                 const QueryFacts (&facts)[count][2],
                                                 const float (&gain)[count][2][4], float (&look)[count][2][4]) {
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s) {
    RUMOR_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      const QueryFacts& own = facts[s][i / 2 % 2];
      float& product = look[s][i / 4][i % 4];
      float share = approximate_exp2(fmaf(product, scale, -own.shift));
      const std::uint32_t own_row = row + s * stripe_rows + lane_row() + i / 2 % 2 * 8;
      if (cut && key + i / 4 * 8 + lane_column() + i % 2 > own_row) share = 0;
      product = share * (gain[s][i / 4][i % 4] - own.dot);
    }
  }
}

template <unsigned size, unsigned count>
__device__ __forceinline__ void scale_sums(float factor, float (&sum)[count][size / 8][4]) {
  RUMOR_UNROLL
  for (unsigned i = 0; i < count * (size / 8) * 4; ++i) sum[i / (size / 2)][i / 4 % (size / 8)][i % 4] *= factor;
}

// Gradient of the queries: each warp takes stripes of queries and loops over tiles of keys.
template <unsigned size>
__global__ void __launch_bounds__(look_threads) attend_bf16_back_queries(AttentionChange args) {
  constexpr unsigned count = stripes<size>;
  __shared__ Bf16Tile<size> keys[tile_buffers<size>], values[tile_buffers<size>];
  const AttentionArgs& in = args.forward;
  const LookHead head = look_head<LookOrder::last_rows_first>(in, query_rows<size>, 1);
  const std::size_t stride = head.stride;
  const Bf16* qkv = those_of<Bf16>(in.qkv);
  const std::uint32_t row = head.first_row + warp_of_thread() * stripe_rows * count;
  const float scale = look_scale_2(in);
  Stripe<size> queries[count], changes[count];
  QueryFacts facts[count][2];
  float sum[count][size / 8][4] = {};
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s) {
    const std::uint32_t own = row + s * stripe_rows;
    load_stripe(in, qkv + head.query, stride, own, queries[s]);
    load_stripe(in, those_of<Bf16>(args.change) + head.output, head.width, own, changes[s]);
    query_facts(args, head, own, changes[s], scale, facts[s]);
  }
  const std::uint32_t behind = head.first_row + query_rows<size>, end = behind < in.context ? behind : in.context;
  const auto begin = [&](std::uint32_t first, unsigned buffer) {
    begin_tile(in, qkv + head.key, stride, first, keys[buffer]);
    begin_tile(in, qkv + head.value, stride, first, values[buffer]);
  };
  const auto use = [&](std::uint32_t first, unsigned buffer) {
    for (unsigned at = 0; at < bf16_tile_rows; at += stripe_rows) {
      const std::uint32_t key = first + at;
      if (key >= row + count * stripe_rows) break;  // above this warp's diagonal
      float look[count][2][4] = {}, gain[count][2][4] = {};
      add_row_products(queries, keys[buffer], at, look);
      add_row_products(changes, values[buffer], at, gain);
      moves_of_queries(key + stripe_rows > row + 1, row, key, scale, facts, gain, look);
      std::uint32_t move[count][4];
      RUMOR_UNROLL
      for (unsigned s = 0; s < count; ++s) as_factor(look[s], move[s]);
      add_rows(move, keys[buffer], at, sum);
    }
  };
  for_each_tile<tile_buffers<size>>(0, end, begin, use);
  scale_sums<size>(look_scale(in), sum);
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s)
    store_stripe<size>(in, sum[s], stride, row + s * stripe_rows, those_of<Bf16>(args.qkv_change) + head.query);
}

constexpr unsigned key_rows = look_warps * stripe_rows;  // of a block

// Shares and their gradients, in place of products with sixteen queries, whose facts these are. With `cut`, keys from
// `key` on are hidden from queries before them, the first of which is `query`.
__device__ __forceinline__ void shares_of_keys(bool cut, std::uint32_t query, std::uint32_t key, float scale,
                                               const QueryFacts* facts, float (&look)[2][4], float (&gain)[2][4]) {
  RUMOR_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned q = half * 8 + lane_column();
    const float4 both = *reinterpret_cast<const float4*>(facts + q);  // of two neighbours
    RUMOR_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
      float share = approximate_exp2(fmaf(look[half][i], scale, -(i % 2 == 0 ? both.x : both.z)));
      if (cut && query + q + i % 2 < key + lane_row() + i / 2 * 8) share = 0;
      look[half][i] = share;
      gain[half][i] = share * (gain[half][i] - (i % 2 == 0 ? both.y : both.w));
    }
  }
}

// Gradient of keys and values: each warp takes one stripe and loops over tiles of the queries that see it, head after
// head of those that share it. Runs after attend_bf16_back_queries.
template <unsigned size>
__global__ void __launch_bounds__(look_threads, size <= 64 ? 3 : 2) attend_bf16_back_keys(AttentionChange args) {
  __shared__ Bf16Tile<size> queries[tile_buffers<size>], changes[tile_buffers<size>];
  __shared__ FactsTile facts[tile_buffers<size>];
  const AttentionArgs& in = args.forward;
  const std::uint32_t sharing = sharing_heads(in);
  LookHead head = look_head<LookOrder::first_rows_first>(in, key_rows, sharing);
  const std::size_t stride = head.stride;
  const Bf16* qkv = those_of<Bf16>(in.qkv);
  const std::uint32_t row = head.first_row + warp_of_thread() * stripe_rows;
  const float scale = look_scale_2(in);
  Stripe<size> key[1], value[1];
  float key_sum[1][size / 8][4] = {}, value_sum[1][size / 8][4] = {};
  load_stripe(in, qkv + head.key, stride, row, key[0]);
  load_stripe(in, qkv + head.value, stride, row, value[0]);
  const auto begin = [&](std::uint32_t first, unsigned buffer) {
    begin_tile(in, qkv + head.query, stride, first, queries[buffer]);
    begin_tile(in, those_of<Bf16>(args.change) + head.output, head.width, first, changes[buffer]);
    if (threadIdx.x >= bf16_tile_rows) return;
    QueryFacts* to = &facts[buffer].row[threadIdx.x];
    if (first + threadIdx.x < in.context)
      begin_copy<8>(to, reinterpret_cast<const QueryFacts*>(args.dot) + head.statistics + first + threadIdx.x, true);
    else
      *to = no_facts();
  };
  const auto use = [&](std::uint32_t first, unsigned buffer) {
    for (unsigned at = 0; at < bf16_tile_rows; at += stripe_rows) {
      if (first + at + stripe_rows <= row) continue;  // none of these queries sees any of these keys
      float look[1][2][4] = {}, gain[1][2][4] = {};
      add_row_products(key, queries[buffer], at, look);
      add_row_products(value, changes[buffer], at, gain);
      shares_of_keys(first + at < row + stripe_rows, first + at, row, scale, facts[buffer].row + at, look[0], gain[0]);
      std::uint32_t share[1][4], move[1][4];
      as_factor(look[0], share[0]);
      as_factor(gain[0], move[0]);
      add_rows(share, changes[buffer], at, value_sum);
      add_rows(move, queries[buffer], at, key_sum);
    }
  };
  for (std::uint32_t shared = 0; shared < sharing; ++shared, next_head(in, head))
    for_each_tile<tile_buffers<size>>(head.first_row / bf16_tile_rows * bf16_tile_rows, in.context, begin, use);
  scale_sums<size>(look_scale(in), key_sum);
  Bf16* qkv_change = those_of<Bf16>(args.qkv_change);
  store_stripe<size>(in, key_sum[0], stride, row, qkv_change + head.key);
  store_stripe<size>(in, value_sum[0], stride, row, qkv_change + head.value);
}

}  // namespace rumor::gpu
