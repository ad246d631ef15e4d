// Writes the entries of a selection in ascending order.
//
// A warp takes a tile and counts the values above the threshold and at it. One block adds up the counts in the order of
// the tiles. Then the tile's warp writes its entries at the position given by the sums. Among values exactly at the
// threshold the first ones are selected, so both counts are needed. The sums are integers in a fixed order, so the bits
// do not depend on the order in which blocks run.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

constexpr unsigned emit_threads = 256;
constexpr unsigned emit_warps = emit_threads / warp_threads;
constexpr unsigned place_threads = 1024;

__device__ __forceinline__ Tile tile_of(const Source& source, std::uint32_t tile) {
  if (source.tiles != nullptr) return source.tiles[tile];
  const std::uint32_t begin = tile * tile_params, left = source.params - begin;
  return {begin, left < tile_params ? left : tile_params};
}

__device__ __forceinline__ std::uint32_t tiles_of(std::uint32_t params) {
  return params / tile_params + (params % tile_params != 0 ? 1 : 0);
}

// counts[t]: values of tile t above the threshold. counts[tiles + t]: values of tile t at the threshold.
__global__ void __launch_bounds__(emit_threads)
    count_tiles(Source source, const Selection* selection, std::uint32_t* counts) {
  const std::uint32_t tiles = tiles_of(source.params);
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * emit_warps + warp_of_thread();
  if (tile >= tiles) return;  // the whole warp
  const std::uint32_t threshold = selection->threshold;
  std::uint32_t above = 0, equal = 0;
  if (selection->selected != 0) {
    const Tile here = tile_of(source, static_cast<std::uint32_t>(tile));
    for (std::uint32_t i = lane_of_thread(); i < here.count; i += warp_threads) {
      const std::uint32_t magnitude = magnitude_bits(source.value[std::size_t{here.begin} + i]);
      above += magnitude > threshold ? 1 : 0;
      equal += magnitude == threshold ? 1 : 0;
    }
  }
  above = warp_sum(above);
  equal = warp_sum(equal);
  if (lane_of_thread() != 0) return;
  counts[tile] = above;
  counts[std::size_t{tiles} + tile] = equal;
}

// One block. Replaces each count by the sum of the counts of earlier tiles. The halves of one word hold both kinds,
// which are added at once: neither sum exceeds 2^31.
__global__ void __launch_bounds__(place_threads) place_tiles(std::uint32_t tiles, std::uint32_t* counts) {
  constexpr unsigned each = 8;
  __shared__ std::uint64_t sums[place_threads / warp_threads];
  std::uint64_t carry = 0;
  for (std::uint32_t from = 0; from < tiles; from += each * place_threads) {
    const std::uint32_t first = from + threadIdx.x * each;
    std::uint64_t own[each], sum = 0, all = 0;
    RUMOR_UNROLL
    for (unsigned t = 0; t < each; ++t) {
      const std::uint32_t tile = first + t;
      own[t] = tile < tiles ? std::uint64_t{counts[std::size_t{tiles} + tile]} << 32 | counts[tile] : 0;
      sum += own[t];
    }
    std::uint64_t before = carry + block_exclusive<place_threads>(sum, sums, all);
    carry += all;
    RUMOR_UNROLL
    for (unsigned t = 0; t < each; ++t) {
      const std::uint32_t tile = first + t;
      if (tile >= tiles) break;
      counts[tile] = static_cast<std::uint32_t>(before);
      counts[std::size_t{tiles} + tile] = static_cast<std::uint32_t>(before >> 32);
      before += own[t];
    }
  }
}

__global__ void __launch_bounds__(emit_threads)
    write_tiles(Source source, const Selection* selection, const std::uint32_t* before, std::uint32_t* index,
                std::uint8_t* negative) {
  const std::uint32_t tiles = tiles_of(source.params);
  const std::uint64_t tile = std::uint64_t{blockIdx.x} * emit_warps + warp_of_thread();
  if (tile >= tiles || selection->selected == 0) return;  // the whole warp
  const std::uint32_t threshold = selection->threshold, ties = selection->ties;
  const Tile here = tile_of(source, static_cast<std::uint32_t>(tile));
  std::uint32_t equal_before = before[std::size_t{tiles} + tile];
  std::uint32_t place = before[tile] + (equal_before < ties ? equal_before : ties);
  for (std::uint32_t from = 0; from < here.count; from += warp_threads) {
    const std::uint32_t i = from + lane_of_thread();
    const bool there = i < here.count;
    const std::size_t at = std::size_t{here.begin} + i;
    const float value = there ? source.value[at] : 0.0f;
    const std::uint32_t magnitude = magnitude_bits(value);
    const bool equal = there && magnitude == threshold;
    const std::uint32_t equals = __ballot_sync(whole_warp, equal);
    const bool first = equal && equal_before + __popc(equals & lanes_below()) < ties;
    const std::uint32_t kept = __ballot_sync(whole_warp, first || (there && magnitude > threshold));
    if (kept >> lane_of_thread() & 1) {
      const std::uint32_t to = place + __popc(kept & lanes_below());
      index[to] = source.first + (source.tiles != nullptr ? source.index[at] : static_cast<std::uint32_t>(at));
      negative[to] = static_cast<std::uint8_t>(__float_as_uint(value) >> 31);
    }
    equal_before += __popc(equals);
    place += __popc(kept);
  }
}

__global__ void take_sent_entries(float* residual, const std::uint32_t* index, std::uint32_t count, float step) {
  for (std::uint64_t e = grid_thread(); e < count; e += grid_threads()) {
    float& value = residual[index[e]];
    value -= copysignf(step, value);
  }
}

__global__ void add_entry_changes(float* residual, const std::uint32_t* index, const float* change,
                                  std::uint32_t count) {
  for (std::uint64_t e = grid_thread(); e < count; e += grid_threads()) residual[index[e]] += change[e];
}

__global__ void put_values(const std::uint32_t* index, const float* value, std::uint32_t count, float* to) {
  for (std::uint64_t e = grid_thread(); e < count; e += grid_threads()) to[index[e]] = value[e];
}

// The number of elements of the ascending index[] that are below `edge`.
__device__ __forceinline__ std::uint32_t lower_bound(const std::uint32_t* index, std::uint32_t count,
                                                     std::uint64_t edge) {
  std::uint32_t low = 0, high = count;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (index[middle] < edge)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// One thread per piece: a floating-point sum must keep one order.
__global__ void sum_pieces(const float* residual, const std::uint32_t* index, std::uint32_t count,
                           std::uint32_t first, std::uint32_t piece_shift, std::uint32_t pieces, double* sums) {
  const std::uint64_t piece = grid_thread();
  if (piece >= pieces) return;
  const std::uint32_t end = lower_bound(index, count, first + ((piece + 1) << piece_shift));
  double sum = 0;
  for (std::uint32_t e = lower_bound(index, count, first + (piece << piece_shift)); e < end; ++e)
    sum += fabs(static_cast<double>(residual[index[e]]));
  sums[piece] = sum;
}

__global__ void count_below_edges(const std::uint32_t* index, std::uint32_t count, const std::uint32_t* edges,
                                  std::uint32_t edge_count, std::uint32_t* below) {
  const std::uint64_t e = grid_thread();
  if (e < edge_count) below[e] = lower_bound(index, count, edges[e]);
}

__global__ void gather_words(const std::uint32_t* from, const std::uint32_t* at, std::uint32_t count,
                             std::uint32_t* to) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) to[i] = from[at[i]];
}

}  // namespace rumor::gpu
