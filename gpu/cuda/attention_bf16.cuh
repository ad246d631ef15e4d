// Causal attention of bfloat16 numbers by the matrix units. It computes the result of attention.cuh, also in tiles and
// with the same running maximum (Dao 2023, "FlashAttention-2": a warp has its own rows, so warps share only tiles).
//
// A warp has stripes of sixteen rows; a tile of 64 other rows is in shared memory. The stride of tile rows is their
// length plus 16 bytes, so that the eight rows of a loaded matrix are in different banks. The next tile is copied while
// this one is used, if two fit in shared memory. Shares of the softmax are rounded to bfloat16 for their product. Their
// sum uses the unrounded shares, in float32, as do all other sums. Powers are the special function units'.
#pragma once

#include "gpu/cuda/attention.cuh"
#include "gpu/cuda/matrix_units.cuh"

namespace rumor::gpu {

constexpr unsigned look_warps = look_threads / warp_threads;
constexpr unsigned stripe_rows = 16;
constexpr unsigned bf16_tile_rows = 64;
constexpr unsigned tile_groups = bf16_tile_rows / stripe_rows;

// The number of query stripes of a warp: each loaded matrix of keys or values serves all of them.
template <unsigned size>
constexpr unsigned stripes = size <= 64 ? 2 : 1;
template <unsigned size>
constexpr unsigned query_rows = look_warps * stripe_rows * stripes<size>;  // of a block

// Heads are padded with zeros to `size`.
template <unsigned size>
struct alignas(16) Bf16Tile {
  Bf16 row[bf16_tile_rows][size + 8];
};
// A stripe as the left operand of products, in groups of sixteen columns.
template <unsigned size>
struct Stripe {
  std::uint32_t part[size / 16][4];
};

// Position of a lane's parts of a matrix (matrix_units.cuh).
__device__ __forceinline__ unsigned lane_row() {
  return lane_of_thread() / 4;
}
__device__ __forceinline__ unsigned lane_column() {
  return lane_of_thread() % 4 * 2;
}

// Whether rows of `size` numbers, `stride` apart, can be moved `numbers` at a time.
__device__ __forceinline__ bool can_move(const void* rows, std::size_t stride, std::uint32_t size, unsigned numbers) {
  return size % numbers == 0 && stride % numbers == 0 && is_aligned(rows, numbers * sizeof(Bf16));
}

// Begins to load a tile: rows `first` to first + bf16_tile_rows - 1 of a head, zeros behind the last row.
template <unsigned size>
__device__ __forceinline__ void begin_tile(const AttentionArgs& args, const Bf16* head, std::size_t stride,
                                           std::uint32_t first, Bf16Tile<size>& tile) {
  constexpr unsigned eights = size / 8;
  const bool whole = can_move(head, stride, args.head_size, 8);
  RUMOR_UNROLL
  for (unsigned turn = 0; turn < bf16_tile_rows * eights / look_threads; ++turn) {
    const unsigned e = turn * look_threads + threadIdx.x;
    const unsigned row = e / eights, number = e % eights * 8;
    const bool there = first + row < args.context;
    Bf16* to = &tile.row[row][number];
    if (whole) {
      const bool copied = there && number < args.head_size;
      begin_copy<16>(to, copied ? head + (first + row) * stride + number : head, copied);
      continue;
    }
    const Bf16* from = head + (first + row) * stride + number;
    RUMOR_UNROLL
    for (unsigned n = 0; n < 8; ++n) to[n] = there && number + n < args.head_size ? from[n] : Bf16{};
  }
}

// Two tiles in turn where they fit, so that one is loaded while the other is used.
template <unsigned size>
constexpr unsigned tile_buffers = size <= 64 ? 2 : 1;

// Called by whole blocks. Loops over tiles from `first` up to `end`, both multiples of bf16_tile_rows apart: begin(row,
// buffer) begins to load the tile from `row` on, and use(row, buffer) uses it.
template <unsigned buffers, class Begin, class Use>
__device__ __forceinline__ void for_each_tile(std::uint32_t first, std::uint32_t end, const Begin& begin,
                                              const Use& use) {
  if (buffers == 2 && first < end) {
    begin(first, 0);
    end_copies();
  }
  unsigned buffer = 0;
  for (std::uint32_t row = first; row < end; row += bf16_tile_rows) {
    const std::uint32_t loaded = buffers == 2 ? row + bf16_tile_rows : row;
    if (loaded < end) begin(loaded, buffers == 2 ? buffer ^ 1 : 0);
    end_copies();
    wait_for_copies<buffers - 1>();
    __syncthreads();
    use(row, buffer);
    __syncthreads();  // all threads are done with this tile
    if (buffers == 2) buffer ^= 1;
  }
}

template <unsigned size>
__device__ __forceinline__ void load_stripe(const AttentionArgs& args, const Bf16* head, std::size_t stride,
                                            std::uint32_t first_row, Stripe<size>& stripe) {
  const bool pairs = can_move(head, stride, args.head_size, 2);
  const auto bits_of = [&](std::uint32_t row, std::uint32_t number) -> std::uint32_t {
    return row < args.context && number < args.head_size ? head[row * stride + number].bits : 0;
  };
  RUMOR_UNROLL
  for (unsigned i = 0; i < size / 16 * 4; ++i) {
    const std::uint32_t row = first_row + lane_row() + i % 2 * 8;
    const std::uint32_t number = i / 4 * 16 + i / 2 % 2 * 8 + lane_column();
    std::uint32_t& part = stripe.part[i / 4][i % 4];
    if (!pairs)
      part = bits_of(row, number) | bits_of(row, number + 1) << 16;
    else if (row < args.context && number < args.head_size)
      part = *reinterpret_cast<const std::uint32_t*>(head + row * stride + number);
    else
      part = 0;
  }
}

template <unsigned size>
__device__ __forceinline__ void store_stripe(const AttentionArgs& args, const float (&sum)[size / 8][4],
                                             std::size_t stride, std::uint32_t first_row, Bf16* head) {
  const bool pairs = can_move(head, stride, args.head_size, 2);
  RUMOR_UNROLL
  for (unsigned i = 0; i < size / 8 * 2; ++i) {
    const std::uint32_t row = first_row + lane_row() + i % 2 * 8, number = i / 2 * 8 + lane_column();
    if (row >= args.context || number >= args.head_size) continue;
    const std::uint32_t both = two_bf16(sum[i / 2][i % 2 * 2], sum[i / 2][i % 2 * 2 + 1]);
    Bf16* to = head + row * stride + number;
    if (pairs) {
      *reinterpret_cast<std::uint32_t*>(to) = both;
      continue;
    }
    to[0] = {static_cast<std::uint16_t>(both)};
    if (number + 1 < args.head_size) to[1] = {static_cast<std::uint16_t>(both >> 16)};
  }
}

// products[s] += each stripe's rows times sixteen rows of the tile, from `row` on.
template <unsigned size, unsigned count>
__device__ __forceinline__ void add_row_products(const Stripe<size> (&stripe)[count], const Bf16Tile<size>& tile,
                                                 unsigned row, float (&products)[count][2][4]) {
  const unsigned lane = lane_of_thread();
  RUMOR_UNROLL
  for (unsigned part = 0; part < size / 16; ++part) {
    std::uint32_t b[4];
    load_matrices(b, &tile.row[row + lane / 16 * 8 + lane % 8][part * 16 + lane / 8 % 2 * 8]);
    RUMOR_UNROLL
    for (unsigned s = 0; s < count; ++s) {
      multiply_add(products[s][0], stripe[s].part[part], b[0], b[1]);
      multiply_add(products[s][1], stripe[s].part[part], b[2], b[3]);
    }
  }
}

// sum[s] += factor[s], 16 x 16, times sixteen rows of the tile, from `row` on.
template <unsigned size, unsigned count>
__device__ __forceinline__ void add_rows(const std::uint32_t (&factor)[count][4], const Bf16Tile<size>& tile,
                                         unsigned row, float (&sum)[count][size / 8][4]) {
  const unsigned lane = lane_of_thread();
  RUMOR_UNROLL
  for (unsigned part = 0; part < size / 16; ++part) {
    std::uint32_t b[4];
    load_matrices_turned(b, &tile.row[row + lane % 16][part * 16 + lane / 16 * 8]);
    RUMOR_UNROLL
    for (unsigned s = 0; s < count; ++s) {
      multiply_add(sum[s][part * 2], factor[s], b[0], b[1]);
      multiply_add(sum[s][part * 2 + 1], factor[s], b[2], b[3]);
    }
  }
}

// Rounds two adjacent sums of products to the left operand of the next product.
__device__ __forceinline__ void as_factor(const float (&x)[2][4], std::uint32_t (&factor)[4]) {
  RUMOR_UNROLL
  for (unsigned i = 0; i < 4; ++i) factor[i] = two_bf16(x[i / 2][i % 2 * 2], x[i / 2][i % 2 * 2 + 1]);
}

// Running state of a stripe of queries, for the lane's two rows.
struct Seen {
  float top[2], weight[2];  // weight: over the columns of this lane
};

__device__ __forceinline__ float largest_of_four(float value) {
  for (unsigned distance = 1; distance < 4; distance *= 2) {
    const float other = __shfl_xor_sync(whole_warp, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

// The scale of look_scale(), for powers of two instead of e.
__device__ __forceinline__ float look_scale_2(const AttentionArgs& args) {
  return look_scale(args) * 1.44269504f;
}

// Turns the products of stripe s, from row `row`, with the tile of keys from `key` on into shares of the softmax.
// Scales down the earlier sums if the maximum has grown.
template <unsigned size, unsigned count>
__device__ __forceinline__ void take_shares(std::uint32_t row, std::uint32_t key, float scale, unsigned s,
                                            float (&look)[tile_groups][count][2][4], Seen& seen,
                                            float (&sum)[size / 8][4]) {
  const bool cut = key + bf16_tile_rows > row + 1;  // the stripe's first row does not see all keys of the tile
  RUMOR_UNROLL
  for (unsigned below = 0; below < 2; ++below) {
    const std::uint32_t own_row = row + lane_row() + below * 8;
    float top = seen.top[below], weight = 0;
    RUMOR_UNROLL
    for (unsigned k = 0; k < bf16_tile_rows / 4; ++k) {
      float& one = look[k / 4][s][k / 2 % 2][below * 2 + k % 2];
      if (cut && key + k / 2 * 8 + lane_column() + k % 2 > own_row) one = -__uint_as_float(infinity_bits);
      top = one > top ? one : top;
    }
    top = largest_of_four(top);
    const float shift = top * scale;
    RUMOR_UNROLL
    for (unsigned k = 0; k < bf16_tile_rows / 4; ++k) {
      float& one = look[k / 4][s][k / 2 % 2][below * 2 + k % 2];
      one = approximate_exp2(fmaf(one, scale, -shift));
      weight += one;
    }
    const float keep = approximate_exp2(fmaf(seen.top[below], scale, -shift));
    seen.top[below] = top;
    seen.weight[below] = fmaf(seen.weight[below], keep, weight);
    RUMOR_UNROLL
    for (unsigned n = 0; n < size / 8 * 2; ++n) sum[n / 2][below * 2 + n % 2] *= keep;
  }
}

// Divides by the weights and writes the rows.
template <unsigned size>
__device__ __forceinline__ void finish_stripe(const AttentionArgs& args, const LookHead& head, std::uint32_t row,
                                              const Seen& seen, float (&sum)[size / 8][4]) {
  RUMOR_UNROLL
  for (unsigned below = 0; below < 2; ++below) {
    const std::uint32_t own_row = row + lane_row() + below * 8;
    const float weight = 1.0f / sum_of_four(seen.weight[below]);
    RUMOR_UNROLL
    for (unsigned n = 0; n < size / 8 * 2; ++n) sum[n / 2][below * 2 + n % 2] *= weight;
    if (own_row >= args.context || lane_column() != 0) continue;
    args.top[head.statistics + own_row] = seen.top[below];
    args.weight[head.statistics + own_row] = weight;
  }
  store_stripe<size>(args, sum, head.width, row, those_of<Bf16>(args.y) + head.output);
}

template <unsigned size>
__global__ void __launch_bounds__(look_threads) attend_bf16(AttentionArgs args) {
  constexpr unsigned count = stripes<size>;
  __shared__ Bf16Tile<size> keys[tile_buffers<size>], values[tile_buffers<size>];
  const LookHead head = look_head<LookOrder::last_rows_first>(args, query_rows<size>, 1);
  const std::size_t stride = head.stride;
  const Bf16* qkv = those_of<Bf16>(args.qkv);
  const std::uint32_t row = head.first_row + warp_of_thread() * stripe_rows * count;  // the warp's first
  const float scale = look_scale_2(args), none = -__uint_as_float(infinity_bits);
  Stripe<size> queries[count];
  Seen seen[count];
  float sum[count][size / 8][4] = {};
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s) {
    load_stripe(args, qkv + head.query, stride, row + s * stripe_rows, queries[s]);
    seen[s] = {{none, none}, {0.0f, 0.0f}};
  }
  const std::uint32_t behind = head.first_row + query_rows<size>, end = behind < args.context ? behind : args.context;
  const auto begin = [&](std::uint32_t first, unsigned buffer) {
    begin_tile(args, qkv + head.key, stride, first, keys[buffer]);
    begin_tile(args, qkv + head.value, stride, first, values[buffer]);
  };
  const auto use = [&](std::uint32_t first, unsigned buffer) {
    if (first >= row + count * stripe_rows) return;  // wholly above this warp's diagonal
    float look[tile_groups][count][2][4] = {};
    RUMOR_UNROLL
    for (unsigned group = 0; group < tile_groups; ++group)
      add_row_products(queries, keys[buffer], group * stripe_rows, look[group]);
    RUMOR_UNROLL
    for (unsigned s = 0; s < count; ++s)
      take_shares<size>(row + s * stripe_rows, first, scale, s, look, seen[s], sum[s]);
    RUMOR_UNROLL
    for (unsigned group = 0; group < tile_groups; ++group) {
      std::uint32_t share[count][4];
      RUMOR_UNROLL
      for (unsigned s = 0; s < count; ++s) as_factor(look[group][s], share[s]);
      add_rows(share, values[buffer], group * stripe_rows, sum);
    }
  };
  for_each_tile<tile_buffers<size>>(0, end, begin, use);
  RUMOR_UNROLL
  for (unsigned s = 0; s < count; ++s) finish_stripe<size>(args, head, row + s * stripe_rows, seen[s], sum[s]);
}

}  // namespace rumor::gpu
