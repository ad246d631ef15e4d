// Payload bodies: a block takes a segment, and each of its threads 32 neighbouring entries (compress/FORMAT.md 4.6).
//
// The parts of a segment follow one another in one bit stream, so a block processes them in order. Within a part, sums
// over the threads give all positions:
//   Fields have one width, so thread t knows the position of its entries' fields.
//   Thirds: a thread has one word of flags; the number of flags before gives the position of its further bits.
//   Unary quotients: a bit map whose e-th one is at the sum of the first e + 1 quotients plus e.
// A thread reads a stretch of the map, knows how many ones came before, and writes that sum for each of its ones. A
// position is
//   first + e + sum of gaps,  sum of gaps = (sum of quotients * 1 or 3 << L) + sum of (third << L | low bits).
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {

constexpr unsigned code_threads = 512;
constexpr unsigned thread_entries = 32;
constexpr std::uint32_t part_entries_max = 16384;  // FORMAT.md 4.5
static_assert(code_threads * thread_entries == part_entries_max, "a block takes a part at once");

// The entries of this thread in a part: [begin, end).
struct OwnEntries {
  std::uint32_t begin, end;
};

__device__ __forceinline__ OwnEntries own_entries(const CodePart& part) {
  const std::uint32_t begin = threadIdx.x * thread_entries, end = begin + thread_entries;
  return {begin < part.count ? begin : part.count, end < part.count ? end : part.count};
}

// ---- encode ----

// Writes consecutive bits from any bit position on, one word at a time.
struct BitSink {
  std::uint32_t* words;
  std::uint64_t at;
  std::uint64_t waiting = 0;
  unsigned used = 0;

  // Requires: width <= 32, value < 2^width.
  __device__ __forceinline__ void put(std::uint32_t value, unsigned width) {
    waiting |= std::uint64_t{value} << used;
    used += width;
    if (used >= 32) flush(32);
  }
  __device__ __forceinline__ void flush(unsigned width) {
    or_bits(words, at, static_cast<std::uint32_t>(waiting));
    at += width;
    waiting >>= width;
    used -= width;
  }
  __device__ __forceinline__ void finish() {
    if (used > 0) flush(used);
  }
};

// The gap before entry e of the part, split into its coded fields.
struct Gap {
  std::uint32_t low, third, quotient;
};

__device__ __forceinline__ Gap gap_of(const CodePart& part, std::uint32_t next, std::uint32_t position) {
  const std::uint32_t gap = position - next, high = gap >> part.low_bits;
  const std::uint32_t low = gap & ((1u << part.low_bits) - 1);
  if (part.thirds == 0) return {low, 0, high};
  return {low, high % 3, high / 3};
}

// Writes a part from bit `at` on, by the whole block; returns the bit after it.
__device__ __forceinline__ std::uint64_t encode_part(const CodePart& part, const std::uint32_t* index,
                                                     const std::uint8_t* negative, std::uint32_t* words,
                                                     std::uint64_t at, std::uint32_t* sums) {
  const OwnEntries own = own_entries(part);
  const std::uint32_t first_next = own.begin == 0 ? part.first : index[own.begin - 1] + 1;
  const unsigned width = part.low_bits + 1;
  BitSink fields{words, at + std::uint64_t{own.begin} * width};
  std::uint32_t not_first = 0, last = 0, lasts = 0, quotients = 0, next = first_next;
  for (std::uint32_t e = own.begin; e < own.end; ++e) {
    const Gap gap = gap_of(part, next, index[e]);
    fields.put(gap.low | static_cast<std::uint32_t>(negative[e]) << part.low_bits, width);
    if (gap.third != 0) {
      not_first |= 1u << (e - own.begin);
      last |= (gap.third - 1) << lasts++;
    }
    quotients += gap.quotient;
    next = index[e] + 1;
  }
  fields.finish();
  at += std::uint64_t{part.count} * width;
  if (part.thirds != 0) {
    std::uint32_t all_lasts = 0;
    const std::uint32_t lasts_before = block_exclusive<code_threads>(lasts, sums, all_lasts);
    or_bits(words, at + own.begin, not_first);
    or_bits(words, at + part.count + lasts_before, last);
    at += std::uint64_t{part.count} + all_lasts;
  }
  std::uint32_t all_quotients = 0;
  std::uint32_t quotient_sum = block_exclusive<code_threads>(quotients, sums, all_quotients);
  next = first_next;
  for (std::uint32_t e = own.begin; e < own.end; ++e) {
    quotient_sum += gap_of(part, next, index[e]).quotient;
    next = index[e] + 1;
    or_bits(words, at + quotient_sum + e, 1);
  }
  return at + all_quotients + part.count;
}

__global__ void __launch_bounds__(code_threads)
    encode_segments(const CodePart* parts, const CodeSegment* segments, const std::uint32_t* index,
                    const std::uint8_t* negative, std::uint32_t* words, std::uint64_t* ends) {
  __shared__ std::uint32_t sums[code_threads / warp_threads];
  const CodeSegment segment = segments[blockIdx.x];
  std::uint64_t at = segment.at, entry = segment.first_entry;
  for (std::uint32_t p = 0; p < segment.parts; ++p) {
    const CodePart part = parts[segment.first_part + p];
    at = encode_part(part, index + entry, negative + entry, words, at, sums);
    entry += part.count;
  }
  if (threadIdx.x == 0) ends[blockIdx.x] = at;
}

// ---- decode ----

struct DecodeShared {
  std::uint16_t quotient_sums[part_entries_max];  // at most 2 * 16,384: rice.h
  std::uint32_t sums[code_threads / warp_threads];
  std::uint64_t long_sums[code_threads / warp_threads];
  std::uint32_t ones;  // of the quotients of a part
  std::uint32_t last_position_fits;
};

// Positions of the pieces of a part, as places_of() in compress/payload/rice_kernels.cc; quotients == 0 if they do not
// fit.
struct CodePlaces {
  std::uint64_t not_first, last, quotients, end;
  std::uint32_t flags;  // of this thread's entries: whether the third is not the first
  std::uint32_t lasts_before;
};

__device__ __forceinline__ CodePlaces places_of(const CodePart& part, const OwnEntries& own, const std::uint32_t* words,
                                                std::uint64_t at, std::uint64_t end, std::uint32_t* sums) {
  CodePlaces places = {};
  const std::uint64_t count = part.count;
  places.not_first = at + count * (part.low_bits + 1);
  places.last = places.not_first + (part.thirds != 0 ? count : 0);
  if (places.last + count > end) return places;
  std::uint32_t lasts = 0;
  if (part.thirds != 0) {
    if (own.begin < own.end) places.flags = bits_at(words, places.not_first + own.begin, own.end - own.begin);
    places.lasts_before = block_exclusive<code_threads>(static_cast<std::uint32_t>(__popc(places.flags)), sums, lasts);
  }
  if (places.last + lasts + count > end) return places;
  places.quotients = places.last + lasts;
  const std::uint64_t divisor = std::uint64_t{part.thirds != 0 ? 3u : 1u} << part.low_bits;
  const std::uint64_t longest = places.quotients + count + (part.span - part.count) / divisor;
  places.end = longest < end ? longest : end;
  return places;
}

// Writes to shared.quotient_sums the sum of the quotients up to each entry; read it after the next barrier. Returns
// false if there are too few.
__device__ __forceinline__ bool sum_quotients(const CodePart& part, const CodePlaces& places,
                                              const std::uint32_t* words, DecodeShared& shared) {
  const auto bits = static_cast<std::uint32_t>(places.end - places.quotients);  // at most 3 * 16,384
  const std::uint32_t each = ((bits + 31) / 32 + code_threads - 1) / code_threads;
  const std::uint32_t begin = threadIdx.x * each * 32;
  std::uint32_t own = 0, all = 0;
  for (std::uint32_t from = begin; from < begin + each * 32 && from < bits; from += 32)
    own += static_cast<std::uint32_t>(
        __popc(bits_at(words, places.quotients + from, bits - from < 32 ? bits - from : 32)));
  std::uint32_t e = block_exclusive<code_threads>(own, shared.sums, all);
  for (std::uint32_t from = begin; from < begin + each * 32 && from < bits; from += 32) {
    std::uint32_t word = bits_at(words, places.quotients + from, bits - from < 32 ? bits - from : 32);
    for (; word != 0 && e < part.count; word &= word - 1, ++e)
      shared.quotient_sums[e] = static_cast<std::uint16_t>(from + static_cast<std::uint32_t>(__ffs(word)) - 1 - e);
  }
  return all >= part.count;
}

// Reads a part from bit `at` on, by the whole block; returns the bit after it, or 0 if there is no such part.
__device__ __forceinline__ std::uint64_t decode_part(const CodePart& part, const std::uint32_t* words, std::uint64_t at,
                                                     std::uint64_t end, std::uint32_t* index, std::uint8_t* negative,
                                                     DecodeShared& shared) {
  const OwnEntries own = own_entries(part);
  const CodePlaces places = places_of(part, own, words, at, end, shared.sums);
  if (places.quotients == 0 || !sum_quotients(part, places, words, shared)) return 0;
  const unsigned width = part.low_bits + 1;
  const std::uint32_t low_mask = (1u << part.low_bits) - 1;
  const std::uint32_t last_bits = places.flags != 0 ? bits_at(words, places.last + places.lasts_before, 32) : 0;
  // The amount that an entry adds to the sum of gaps beyond its quotient. Called for all entries of the thread first,
  // then again for each entry.
  const auto rest = [&](std::uint32_t e, std::uint32_t field, std::uint32_t& lasts) -> std::uint64_t {
    const std::uint32_t some = places.flags >> (e - own.begin) & 1;
    const std::uint64_t third = some + (some & last_bits >> (lasts & 31));
    lasts += some;
    return (third << part.low_bits) + (field & low_mask);
  };
  std::uint64_t sum = 0, all = 0;
  std::uint32_t lasts = 0;
  for (std::uint32_t e = own.begin; e < own.end; ++e)
    sum += rest(e, bits_at(words, at + std::uint64_t{e} * width, width), lasts);
  sum = block_exclusive<code_threads>(sum, shared.long_sums, all);
  lasts = 0;
  for (std::uint32_t e = own.begin; e < own.end; ++e) {
    const std::uint32_t field = bits_at(words, at + std::uint64_t{e} * width, width);
    sum += rest(e, field, lasts);
    const std::uint64_t highs = std::uint64_t{shared.quotient_sums[e]} * (part.thirds != 0 ? 3 : 1);
    const std::uint64_t position = part.first + std::uint64_t{e} + (highs << part.low_bits) + sum;
    index[e] = static_cast<std::uint32_t>(position);
    negative[e] = static_cast<std::uint8_t>(field >> part.low_bits & 1);
    if (e + 1 != part.count) continue;
    const std::uint64_t last = std::uint64_t{part.first} + part.span - 1;
    shared.last_position_fits = part.must_fill != 0 ? position == last : position <= last;
  }
  __syncthreads();
  // The next part writes these values only after barriers of its own.
  if (shared.last_position_fits == 0) return 0;
  return places.quotients + shared.quotient_sums[part.count - 1] + part.count;
}

__global__ void __launch_bounds__(code_threads)
    decode_segments(const CodePart* parts, const CodeSegment* segments, const std::uint32_t* words,
                    std::uint32_t* index, std::uint8_t* negative, std::uint32_t* sound) {
  __shared__ DecodeShared shared;
  const CodeSegment segment = segments[blockIdx.x];
  std::uint64_t at = segment.at, entry = segment.first_entry;
  for (std::uint32_t p = 0; p < segment.parts && (p == 0 || at != 0); ++p) {
    const CodePart part = parts[segment.first_part + p];
    at = decode_part(part, words, at, segment.end, index + entry, negative + entry, shared);
    entry += part.count;
  }
  if (threadIdx.x != 0) return;
  const std::uint64_t left = segment.end - at;
  const bool ends = at != 0 && left < 8 && (left == 0 || bits_at(words, at, static_cast<unsigned>(left)) == 0);
  sound[blockIdx.x] = ends ? 1 : 0;
}

}  // namespace rumor::gpu
