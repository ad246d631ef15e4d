// The exact k-th largest magnitude by radix selection: digits of eleven, ten and ten bits are counted. A float's bits
// without its sign order as its magnitude does, so the digits are those bits and no number is rounded.
//
// Each round counts the values that share the digits found so far by their next digit. It counts in the shared memory
// of each block, then over all blocks, and one block searches the bins from the largest down. Nothing leaves the device
// in between. Source: the MSD radix selection of Alabi et al. 2012, "Fast k-selection algorithms for graphics
// processing units".
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

constexpr unsigned select_threads = 256;
constexpr unsigned digit_count = 3;
// The lowest bit of each digit; a digit ends where the previous digit begins, the first at bit 31.
__device__ __forceinline__ unsigned digit_shift(unsigned digit) {
  return digit == 0 ? 20 : digit == 1 ? 10 : 0;
}
__device__ __forceinline__ unsigned digit_top(unsigned digit) {
  return digit == 0 ? 31 : digit_shift(digit - 1);
}
static_assert(1u << (31 - 20) == radix_bins, "the first digit is the widest");

// The number of values to select among.
__device__ __forceinline__ std::uint32_t values_of(const Source& source, const Selection& selection) {
  if (source.tiles == nullptr) return source.params;
  return selection.candidates <= source.room ? selection.candidates : 0;
}

__global__ void __launch_bounds__(select_threads)
    count_digits(Source source, unsigned digit, std::uint32_t least, std::uint32_t* bins, const Selection* selection) {
  __shared__ std::uint32_t own[radix_bins];
  for (unsigned bin = threadIdx.x; bin < radix_bins; bin += select_threads) own[bin] = 0;
  __syncthreads();
  const unsigned shift = digit_shift(digit), top = digit_top(digit);
  const std::uint32_t found = digit == 0 ? 0 : selection->threshold;  // the higher digits, in place
  const std::uint32_t count = values_of(source, *selection);
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::uint32_t magnitude = magnitude_bits(source.value[i]);
    if (magnitude >= least && magnitude >> top == found >> top)
      atomicAdd(&own[magnitude >> shift & (radix_bins - 1) & ((1u << (top - shift)) - 1)], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < radix_bins; bin += select_threads)
    if (own[bin] != 0) atomicAdd(&bins[bin], own[bin]);
}

// One block. Finds the bin that holds the rank, narrows the threshold to it, and leaves the bins empty.
__global__ void __launch_bounds__(select_threads)
    find_digit(unsigned digit, std::uint32_t wanted, std::uint32_t* bins, Selection* selection) {
  constexpr unsigned each = radix_bins / select_threads;
  __shared__ std::uint32_t sums[select_threads / warp_threads];
  const unsigned last = radix_bins - 1 - threadIdx.x * each;  // thread 0 has the largest bins
  std::uint32_t counts[each], own = 0, all = 0;
  RUMOR_UNROLL
  for (unsigned b = 0; b < each; ++b) {
    counts[b] = bins[last - b];
    own += counts[b];
    bins[last - b] = 0;
  }
  const std::uint32_t before = block_exclusive<select_threads>(own, sums, all);
  const std::uint32_t rank = digit != 0 ? selection->ties : wanted < all ? wanted : all;
  __syncthreads();  // all threads have read the rank
  if (threadIdx.x == 0 && digit == 0) {
    selection->selected = rank;
    if (rank == 0) selection->threshold = selection->ties = 0;
  }
  if (rank <= before || rank > before + own) return;
  std::uint32_t left = rank - before;
  unsigned b = 0;
  while (left > counts[b]) left -= counts[b++];
  const std::uint32_t found = digit == 0 ? 0 : selection->threshold;
  selection->threshold = found | (last - b) << digit_shift(digit);
  selection->ties = left;
}

}  // namespace rumor::gpu
