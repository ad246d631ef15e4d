// The backward pass of attention_bf16.cuh. As in attention.cuh, one kernel loops over keys for the gradient of queries,
// and one over queries for the gradients of keys and values. No two threads therefore add to the same number. This
// takes seven products; atomics would need five. The gradients of shares are rounded to bfloat16 for their products.
#pragma once

#include "gpu/cuda/attention_bf16.cuh"

namespace rumor::gpu {

// Saved values of a row of queries; zeros if there is no such row.
struct QueryFacts {
  float top, weight, dot;
};

// Loads the lane's two rows of a stripe. Computes `dot`, a row's gradient times its output, and stores it for the keys.
__device__ __forceinline__ void query_facts(const AttentionChange& args, const LookHead& head, std::uint32_t first_row,
                                            QueryFacts (&facts)[2]) {
  const AttentionArgs& in = args.forward;
  const Bf16 *y = those_of<Bf16>(in.y) + head.output, *change = those_of<Bf16>(args.change) + head.output;
  for (unsigned below = 0; below < 2; ++below) {
    const std::uint32_t row = first_row + lane_row() + below * 8;
    const bool there = row < in.context;
    const std::size_t begin = row * head.width, at = head.statistics + row;
    float dot = 0;
    for (std::uint32_t n = lane_of_thread() % 4; there && n < in.head_size; n += 4)
      dot = fmaf(number_of(change[begin + n]), number_of(y[begin + n]), dot);
    dot = sum_of_four(dot);
    facts[below] = there ? QueryFacts{in.top[at], in.weight[at], dot} : QueryFacts{};
    if (there && lane_column() == 0) args.dot[at] = dot;
  }
}

// Gradient of the queries: each warp takes stripes of queries and loops over tiles of keys.
template <unsigned size>
__global__ void __launch_bounds__(look_threads) attend_bf16_back_queries(AttentionChange args) {
  constexpr unsigned count = stripes<size>;
  __shared__ Bf16Tile<size> keys, values;
  const AttentionArgs& in = args.forward;
  const LookHead head = look_head<LookOrder::last_rows_first>(in, query_rows<size>);
  const std::size_t stride = 3 * head.width;
  const Bf16* query = those_of<Bf16>(in.qkv) + head.query;
  const std::uint32_t row = head.first_row + warp_of_thread() * stripe_rows * count;
  const float scale = look_scale(in);
  Stripe<size> queries[count], changes[count];
  QueryFacts facts[count][2];
  float sum[count][size / 8][4] = {};
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s) {
    const std::uint32_t own = row + s * stripe_rows;
    load_stripe(in, query, stride, own, queries[s]);
    load_stripe(in, those_of<Bf16>(args.change) + head.output, head.width, own, changes[s]);
    query_facts(args, head, own, facts[s]);
  }
  const std::uint32_t end = head.first_row + query_rows<size>;
  for (std::uint32_t first = 0; first < end && first < in.context; first += bf16_tile_rows) {
    __syncthreads();
    load_bf16_tile(in, query + head.width, stride, first, keys);
    load_bf16_tile(in, query + 2 * head.width, stride, first, values);
    __syncthreads();
    for (unsigned at = 0; at < bf16_tile_rows; at += stripe_rows) {
      if (first + at >= row + count * stripe_rows) break;  // above this warp's diagonal
      float look[count][2][4] = {}, gain[count][2][4] = {};
      add_row_products(queries, keys, at, look);
      add_row_products(changes, values, at, gain);
      std::uint32_t move[count][4];
      RUMOR_UNROLL
      for (unsigned s = 0; s < count; ++s) {
        RUMOR_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
          const QueryFacts& own = facts[s][i / 2 % 2];
          const std::uint32_t key = first + at + i / 4 * 8 + lane_column() + i % 2;
          const bool sees = key <= row + s * stripe_rows + lane_row() + i / 2 % 2 * 8;
          float& product = look[s][i / 4][i % 4];
          product = look_back(sees, product, own.top, own.weight, scale, gain[s][i / 4][i % 4], own.dot).move;
        }
        as_factor(look[s], move[s]);
      }
      add_rows(move, keys, at, sum);
    }
  }
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s)
    store_stripe<size>(in, sum[s], stride, row + s * stripe_rows, those_of<Bf16>(args.qkv_change) + head.query);
}

constexpr unsigned key_rows = look_warps * stripe_rows;  // of a block

// Gradient of keys and values: each warp takes one stripe and loops over tiles of the queries that see it. Runs after
// attend_bf16_back_queries.
template <unsigned size>
__global__ void __launch_bounds__(look_threads) attend_bf16_back_keys(AttentionChange args) {
  __shared__ Bf16Tile<size> queries, changes;
  __shared__ QueryFacts facts[bf16_tile_rows];
  const AttentionArgs& in = args.forward;
  const LookHead head = look_head<LookOrder::first_rows_first>(in, key_rows);
  const std::size_t stride = 3 * head.width;
  const Bf16* query = those_of<Bf16>(in.qkv) + head.query;
  const std::uint32_t row = head.first_row + warp_of_thread() * stripe_rows;
  const float scale = look_scale(in);
  Stripe<size> key[1], value[1];
  float key_sum[1][size / 8][4] = {}, value_sum[1][size / 8][4] = {};
  load_stripe(in, query + head.width, stride, row, key[0]);
  load_stripe(in, query + 2 * head.width, stride, row, value[0]);
  for (std::uint32_t first = head.first_row / bf16_tile_rows * bf16_tile_rows; first < in.context;
       first += bf16_tile_rows) {
    __syncthreads();
    load_bf16_tile(in, query, stride, first, queries);
    load_bf16_tile(in, those_of<Bf16>(args.change) + head.output, head.width, first, changes);
    if (threadIdx.x < bf16_tile_rows) {
      const std::size_t at = head.statistics + first + threadIdx.x;
      const bool there = first + threadIdx.x < in.context;
      facts[threadIdx.x] = there ? QueryFacts{in.top[at], in.weight[at], args.dot[at]} : QueryFacts{};
    }
    __syncthreads();
    for (unsigned at = 0; at < bf16_tile_rows; at += stripe_rows) {
      if (first + at + stripe_rows <= row) continue;  // none of these queries sees any of these keys
      float look[1][2][4] = {}, gain[1][2][4] = {};
      add_row_products(key, queries, at, look);
      add_row_products(value, changes, at, gain);
      RUMOR_UNROLL
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned q = at + i / 4 * 8 + lane_column() + i % 2;
        const bool sees = first + q >= row + lane_row() + i / 2 % 2 * 8 && first + q < in.context;
        float &product = look[0][i / 4][i % 4], &change = gain[0][i / 4][i % 4];
        const Look one = look_back(sees, product, facts[q].top, facts[q].weight, scale, change, facts[q].dot);
        product = one.share;
        change = one.move;
      }
      std::uint32_t share[1][4], move[1][4];
      as_factor(look[0], share[0]);
      as_factor(gain[0], move[0]);
      add_rows(share, changes, at, value_sum);
      add_rows(move, queries, at, key_sum);
    }
  }
  Bf16* qkv_change = those_of<Bf16>(args.qkv_change) + head.query;
  store_stripe<size>(in, key_sum[0], stride, row, qkv_change + head.width);
  store_stripe<size>(in, value_sum[0], stride, row, qkv_change + 2 * head.width);
}

}  // namespace rumor::gpu
