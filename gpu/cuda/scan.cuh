// The pass over all parameters: residual += change; values that reach the cutoff are written as candidates.
//
// A block takes a tile of 8192 parameters. Each of its warps takes 1024 of them in eight rounds of a vector of four per
// lane, so each lane has sixteen loads of 16 bytes in flight before it needs the first sum. Candidates of a tile are
// adjacent and ascending: ballots give the order within a warp, counts the order of the warps, and one atomic addition
// per tile its place. Tiles are in any order; emit.cuh sorts them once only the entries to send remain. No block waits
// for another, as it would in a scan with look-back. The traffic is 12 bytes per parameter. A step rule that is
// evaluated in the pass adds its moments, each read and written once.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

constexpr unsigned scan_threads = 256;
constexpr unsigned scan_warps = scan_threads / warp_threads;
constexpr unsigned scan_rounds = 8, scan_vector = 4;
constexpr unsigned round_params = warp_threads * scan_vector;
constexpr unsigned warp_params = scan_rounds * round_params;
static_assert(scan_warps * warp_params == tile_params, "a block takes a tile");
static_assert(scan_rounds * scan_vector == 32, "which of a lane's sums are candidates are the bits of one word");

// Four neighbours. `whole`: all four exist and the arrays allow loading them at once. This is decided once per tile, so
// that no branch separates the loads. Otherwise values beyond the end are zeros.
struct FourFloats {
  float v[scan_vector];
};

template <bool whole>
__device__ __forceinline__ FourFloats load_four(const float* from, std::uint64_t at, std::uint32_t params) {
  if constexpr (whole) {
    const float4 loaded = *reinterpret_cast<const float4*>(from + at);
    return {{loaded.x, loaded.y, loaded.z, loaded.w}};
  } else {
    FourFloats four = {};
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j)
      if (at + j < params) four.v[j] = from[at + j];
    return four;
  }
}

template <bool whole>
__device__ __forceinline__ FourFloats load_four(const std::uint16_t* from, std::uint64_t at, std::uint32_t params) {
  if constexpr (whole) {
    const uint2 loaded = *reinterpret_cast<const uint2*>(from + at);
    return {{__uint_as_float(loaded.x << 16), __uint_as_float(loaded.x & 0xffff'0000), __uint_as_float(loaded.y << 16),
             __uint_as_float(loaded.y & 0xffff'0000)}};
  } else {
    FourFloats four = {};
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j)
      if (at + j < params) four.v[j] = __uint_as_float(std::uint32_t{from[at + j]} << 16);
    return four;
  }
}

template <bool whole>
__device__ __forceinline__ void store_four(float* to, std::uint64_t at, std::uint32_t params, const float* four) {
  if constexpr (whole) {
    *reinterpret_cast<float4*>(to + at) = make_float4(four[0], four[1], four[2], four[3]);
  } else {
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j)
      if (at + j < params) to[at + j] = four[j];
  }
}

// Applies a step rule to four gradients and advances its moments. Skips values beyond the end: a rule may turn zeros
// into a NaN.
template <Change form, bool whole>
__device__ __forceinline__ FourFloats step_four(const ScanArgs& args, std::uint64_t at, const FourFloats& gradient) {
  constexpr bool has_first = form != Change::sgd && form != Change::sgdw && form != Change::rmsprop;
  constexpr bool has_second = form != Change::sgd && form != Change::sgdw && form != Change::momentum;
  constexpr bool has_last = form == Change::adaptive_revision;
  constexpr bool has_weights = form == Change::adamw || form == Change::nadamw || form == Change::sgdw;
  const StepRule& rule = args.rule;
  FourFloats change = {}, first = {}, second = {}, last = {}, weight = {};
  if constexpr (has_first) first = load_four<whole>(rule.first, at, args.params);
  if constexpr (has_second) second = load_four<whole>(rule.second, at, args.params);
  if constexpr (has_last) last = load_four<whole>(rule.last, at, args.params);
  if constexpr (has_weights) weight = load_four<whole>(rule.weights, at, args.params);
  RUMOR_UNROLL
  for (unsigned j = 0; j < scan_vector; ++j) {
    if (!whole && at + j >= args.params) break;
    const float g = gradient.v[j];
    if constexpr (form == Change::sgd) change.v[j] = step_rule::sgd(rule, g);
    if constexpr (form == Change::sgdw) change.v[j] = step_rule::sgdw(rule, g, weight.v[j]);
    if constexpr (form == Change::momentum) change.v[j] = step_rule::momentum(rule, g, first.v[j]);
    if constexpr (form == Change::rmsprop) change.v[j] = step_rule::rmsprop(rule, g, second.v[j]);
    if constexpr (form == Change::adam) change.v[j] = step_rule::adam(rule, g, first.v[j], second.v[j]);
    if constexpr (form == Change::adamw)
      change.v[j] = step_rule::adamw(rule, g, first.v[j], second.v[j], weight.v[j]);
    if constexpr (form == Change::nadamw)
      change.v[j] = step_rule::nadamw(rule, g, first.v[j], second.v[j], weight.v[j]);
    if constexpr (form == Change::adaptive_revision)
      change.v[j] = step_rule::adaptive_revision(rule, g, first.v[j], second.v[j], last.v[j]);
  }
  if constexpr (has_first) store_four<whole>(rule.first, at, args.params, first.v);
  if constexpr (has_second) store_four<whole>(rule.second, at, args.params, second.v);
  if constexpr (has_last) store_four<whole>(rule.last, at, args.params, last.v);
  return change;
}

// The sums of a lane, and a bit for each sum that is a candidate: bit 4 r + j is value j of round r.
template <Change form, bool whole>
__device__ __forceinline__ std::uint32_t add_and_compare(const ScanArgs& args, std::uint64_t at, float* sums) {
  FourFloats residual[scan_rounds], change[scan_rounds];
  RUMOR_UNROLL
  for (unsigned r = 0; r < scan_rounds; ++r) {
    const std::uint64_t here = at + r * round_params;
    residual[r] = load_four<whole>(args.residual, here, args.params);
    change[r] = form == Change::bf16 ? load_four<whole>(args.bf16, here, args.params)
                                     : load_four<whole>(args.change, here, args.params);
  }
  RUMOR_UNROLL
  for (unsigned r = 0; r < scan_rounds; ++r) {
    if constexpr (form != Change::floats && form != Change::bf16)
      change[r] = step_four<form, whole>(args, at + r * round_params, change[r]);
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j) sums[scan_vector * r + j] = residual[r].v[j] + change[r].v[j];
    store_four<whole>(args.residual, at + r * round_params, args.params, sums + scan_vector * r);
  }
  std::uint32_t over = 0;
  RUMOR_UNROLL
  for (unsigned s = 0; s < scan_rounds * scan_vector; ++s)
    over |= (magnitude_bits(sums[s]) >= args.cutoff ? 1u : 0u) << s;
  return over;
}

// Writes the candidates of a warp from place `to` on, ascending, and notes the first that is not finite.
__device__ __forceinline__ void write_candidates(const ScanArgs& args, std::uint64_t at, const float* sums,
                                                 std::uint32_t over, std::uint32_t to, bool fits) {
  std::uint32_t not_finite = no_position;
  RUMOR_UNROLL
  for (unsigned r = 0; r < scan_rounds; ++r) {
    const std::uint32_t mine = over >> (scan_vector * r) & ((1u << scan_vector) - 1);
    if (__any_sync(whole_warp, mine != 0) == 0) continue;
    std::uint32_t before = 0, all = 0;
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j) {
      const std::uint32_t lanes = __ballot_sync(whole_warp, mine >> j & 1);
      before += __popc(lanes & lanes_below());
      all += __popc(lanes);
    }
    std::uint32_t place = to + before;
    RUMOR_UNROLL
    for (unsigned j = 0; j < scan_vector; ++j) {
      if ((mine >> j & 1) == 0) continue;
      const float value = sums[scan_vector * r + j];
      const auto position = static_cast<std::uint32_t>(at + r * round_params + j);
      if (magnitude_bits(value) >= infinity_bits && position < not_finite) not_finite = position;
      if (fits) {
        args.index[place] = position;
        args.value[place] = value;
      }
      ++place;
    }
    to += all;
  }
  if (not_finite != no_position) atomicMin(&args.selection->first_not_finite, not_finite);
}

template <Change form>
__global__ void __launch_bounds__(scan_threads) scan_tiles(ScanArgs args) {
  __shared__ std::uint32_t counts[scan_warps];
  __shared__ std::uint32_t tile_begin, tile_fits;
  const unsigned warp = warp_of_thread();
  const std::uint64_t at =
      std::uint64_t{blockIdx.x} * tile_params + warp * warp_params + lane_of_thread() * scan_vector;
  float sums[scan_rounds * scan_vector];
  const StepRule& rule = args.rule;
  const bool aligned = is_aligned(args.residual, 16) && is_aligned(args.change, 16) && is_aligned(args.bf16, 8) &&
                       is_aligned(rule.first, 16) && is_aligned(rule.second, 16) && is_aligned(rule.last, 16) &&
                       is_aligned(rule.weights, 16);
  const bool whole = aligned && (std::uint64_t{blockIdx.x} + 1) * tile_params <= args.params;
  const std::uint32_t over =
      whole ? add_and_compare<form, true>(args, at, sums) : add_and_compare<form, false>(args, at, sums);
  const std::uint32_t count = warp_sum(static_cast<std::uint32_t>(__popc(over)));
  if (lane_of_thread() == 0) counts[warp] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t all = 0;
    for (unsigned w = 0; w < scan_warps; ++w) all += counts[w];
    const std::uint32_t begin = all == 0 ? 0 : atomicAdd(&args.selection->candidates, all);
    tile_begin = begin;
    tile_fits = std::uint64_t{begin} + all <= args.room ? 1 : 0;
    args.tiles[blockIdx.x] = tile_fits != 0 ? Tile{begin, all} : Tile{0, 0};
  }
  __syncthreads();
  std::uint32_t to = tile_begin;
  for (unsigned w = 0; w < warp; ++w) to += counts[w];
  if (count != 0) write_candidates(args, at, sums, over, to, tile_fits != 0);
}

__global__ void begin_scan(Selection* selection) {
  selection->candidates = 0;
  selection->first_not_finite = no_position;
}

}  // namespace rumor::gpu
