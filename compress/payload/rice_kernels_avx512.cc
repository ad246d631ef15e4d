// RICE kernels for AVX-512, alone in their library because only this file may use those instructions.
//
// Decoding: a field has a fixed width, so two permutations extract sixteen fields from 64 bytes, with the same indices
// for the whole part. A compress of lane numbers under sixteen bits of quotients gives the places of the ones. The sum
// of all quotients before an entry is the place of its one minus its number, so only the low parts need a running sum.
// Encoding is the same backwards: neighbours are shifted together until they fill a word, and the ones of sixteen
// quotients are shifted to their places and joined.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "compress/payload/rice_kernels.h"

namespace rumor::compress {
namespace {

constexpr std::uint32_t lanes = 16;
// Above this, sixteen low parts might not fit 32 bits: fewer than a hundred entries, for the portable set.
constexpr std::uint32_t low_bits_max = 24;
// Upper bounds for a part of 16,384 entries, in 64-bit words: one bit per entry in a plane, three in quotients.
constexpr std::uint32_t plane_words = 16384 / 64 + 2, quotient_words = 3 * 16384 / 64 + 2;

inline std::uint64_t load64(const void* bytes) {
  std::uint64_t word;
  __builtin_memcpy(&word, bytes, 8);
  return word;
}

inline std::uint32_t load32(const void* bytes) {
  std::uint32_t word;
  __builtin_memcpy(&word, bytes, 4);
  return word;
}

inline unsigned ones_of(std::uint64_t word) {
  return static_cast<unsigned>(__builtin_popcountll(word));
}

inline __m512i lane_numbers() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

inline __m512i all_lanes(std::uint32_t value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}

// lane i: sum of lanes 0 to i
inline __m512i running_sum(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

inline __mmask16 first_lanes(std::uint32_t count) {
  return static_cast<__mmask16>(count >= lanes ? 0xffff : (1u << count) - 1);
}

// ---- decode ----

// Sixteen fields of a fixed width; sixteen of them are a whole number of bytes, so that the place within the
// first byte stays.
struct FieldReader {
  const std::uint8_t* bytes;
  std::uint32_t stride;
  __m512i word, next_word, right, left;

  FieldReader(const std::uint8_t* from, std::uint64_t at, std::uint32_t width)
      : bytes(from + (at >> 3)), stride(2 * width) {
    const __m512i bit = _mm512_add_epi32(_mm512_mullo_epi32(lane_numbers(), all_lanes(width)),
                                         all_lanes(static_cast<std::uint32_t>(at & 7)));
    word = _mm512_srli_epi32(bit, 5);
    next_word = _mm512_add_epi32(word, all_lanes(1));
    right = _mm512_and_si512(bit, all_lanes(31));
    left = _mm512_sub_epi32(all_lanes(32), right);
  }
  // Bits above the field are those of the next.
  __m512i take() {
    const __m512i words = _mm512_loadu_si512(bytes);
    bytes += stride;
    const __m512i low = _mm512_srlv_epi32(_mm512_permutexvar_epi32(word, words), right);
    const __m512i high = _mm512_sllv_epi32(_mm512_permutexvar_epi32(next_word, words), left);
    return _mm512_or_si512(low, high);
  }
};

// Places of the first `count` ones from bit `at` on, counted from `at`. Returns the bit after the last of
// them, or 0 when they do not end before `end`.
std::uint64_t find_ones(const std::uint8_t* bytes, std::uint64_t at, std::uint64_t end, std::uint32_t count,
                        std::uint32_t* out) {
  std::uint64_t base = at & ~std::uint64_t{7};
  std::uint64_t word = load64(bytes + (base >> 3)) & (~std::uint64_t{0} << (at & 7));
  std::uint32_t found = 0;
  while (found + 64 <= count) {
    const __m512i places = _mm512_add_epi32(lane_numbers(), all_lanes(static_cast<std::uint32_t>(base - at)));
    for (unsigned part = 0; part < 4; ++part) {
      const auto mask = static_cast<__mmask16>(word >> (16 * part));
      const __m512i here = _mm512_add_epi32(places, all_lanes(16 * part));
      _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(mask, here));
      found += ones_of(mask);
    }
    base += 64;
    word = base < end ? load64(bytes + (base >> 3)) : 0;
    if (base >= end && found < count) return 0;
  }
  for (; found < count; ++found) {
    while (word == 0) {
      base += 64;
      if (base >= end) return 0;
      word = load64(bytes + (base >> 3));
    }
    out[found] = static_cast<std::uint32_t>(base - at) + static_cast<unsigned>(__builtin_ctzll(word));
    word &= word - 1;
  }
  const std::uint64_t after = at + out[count - 1] + 1;
  return after <= end ? after : 0;
}

// Ones among `count` bits from bit `at` on.
std::uint64_t count_ones(const std::uint8_t* bytes, std::uint64_t at, std::uint64_t count) {
  std::uint64_t ones = 0;
  for (; count >= 56; count -= 56, at += 56)
    ones += ones_of((load64(bytes + (at >> 3)) >> (at & 7)) & ((std::uint64_t{1} << 56) - 1));
  return ones + ones_of((load64(bytes + (at >> 3)) >> (at & 7)) & ((std::uint64_t{1} << count) - 1));
}

// index holds the places of the ones, and then the positions. Returns false if the low parts alone are beyond any part.
// Otherwise positions are below `first + 2^31`, so the last of them shows whether all fit.
template <bool thirds>
bool join(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at, std::uint64_t not_first_at,
          std::uint64_t last_at, std::uint32_t* index, std::uint8_t* negative) {
  FieldReader fields(bytes, at, part.low_bits + 1);
  const __m512i low_mask = all_lanes((1u << part.low_bits) - 1);
  const __m512i sign_bit = all_lanes(1u << part.low_bits);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(part.low_bits));
  __m512i number = lane_numbers();
  __m512i carry = _mm512_setzero_si512(), wild = _mm512_setzero_si512();
  for (std::uint32_t e = 0; e < part.count; e += lanes) {
    const __mmask16 active = first_lanes(part.count - e);
    const __m512i field = fields.take();
    __m512i rest = _mm512_maskz_and_epi32(active, field, low_mask);
    __m512i high = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(active, index + e), number);
    if constexpr (thirds) {
      const std::uint32_t not_first = (load32(bytes + (not_first_at >> 3)) >> (not_first_at & 7)) & active;
      const std::uint32_t last = _pdep_u32(load32(bytes + (last_at >> 3)) >> (last_at & 7), not_first);
      not_first_at += lanes;
      last_at += ones_of(not_first);
      rest = _mm512_mask_add_epi32(rest, static_cast<__mmask16>(not_first), rest, sign_bit);
      rest = _mm512_mask_add_epi32(rest, static_cast<__mmask16>(last), rest, sign_bit);
      high = _mm512_add_epi32(high, _mm512_slli_epi32(high, 1));
    }
    const __m512i sum = _mm512_add_epi32(running_sum(rest), carry);
    carry = _mm512_permutexvar_epi32(all_lanes(15), sum);
    wild = _mm512_or_si512(wild, sum);
    const __m512i skipped = _mm512_add_epi32(_mm512_sll_epi32(high, shift), sum);
    const __m512i position = _mm512_add_epi32(_mm512_add_epi32(skipped, number), all_lanes(part.first));
    _mm512_mask_storeu_epi32(index + e, active, position);
    const __mmask16 minus = _mm512_test_epi32_mask(field, sign_bit);
    _mm_mask_storeu_epi8(negative + e, active, _mm_maskz_set1_epi8(minus, 1));
    number = _mm512_add_epi32(number, all_lanes(lanes));
  }
  return _mm512_movepi32_mask(wild) == 0;
}

std::uint64_t decode(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at, std::uint64_t end,
                     std::uint32_t* index, std::uint8_t* negative) {
  if (part.low_bits > low_bits_max)
    return rice_kernels_portable.decode(part, bytes, at, end, index, negative);
  const std::uint64_t count = part.count;
  const std::uint64_t not_first_at = at + count * (part.low_bits + 1);
  const std::uint64_t last_at = not_first_at + (part.thirds ? count : 0);
  if (last_at + count > end) return 0;
  const std::uint64_t lasts = part.thirds ? count_ones(bytes, not_first_at, count) : 0;
  const std::uint64_t quotients_at = last_at + lasts;
  if (quotients_at + count > end) return 0;
  const std::uint64_t divisor = std::uint64_t{part.thirds ? 3u : 1u} << part.low_bits;
  const std::uint64_t longest = quotients_at + count + (part.span - part.count) / divisor;
  const std::uint64_t after =
      find_ones(bytes, quotients_at, longest < end ? longest : end, part.count, index);
  if (after == 0) return 0;
  const bool fits = part.thirds ? join<true>(part, bytes, at, not_first_at, last_at, index, negative)
                                : join<false>(part, bytes, at, not_first_at, last_at, index, negative);
  return fits && index[part.count - 1] - part.first < part.span ? after : 0;
}

// ---- encode ----

// Appends to a stream; bytes behind the bits so far are overwritten.
struct Appender {
  std::uint8_t* bytes;
  std::uint64_t word;
  unsigned used;  // below 8

  Appender(std::uint8_t* out, std::uint64_t at) : bytes(out + (at >> 3)), word(*bytes), used(at & 7) {}

  // Requires: width <= 56, value < 2^width.
  void put(std::uint64_t value, unsigned width) {
    word |= value << used;
    __builtin_memcpy(bytes, &word, 8);
    used += width;
    bytes += used >> 3;
    word >>= used & ~7u;
    used &= 7;
  }
  std::uint64_t finish(const std::uint8_t* out) {
    __builtin_memcpy(bytes, &word, 8);
    return 8 * static_cast<std::uint64_t>(bytes - out) + used;
  }
};

std::uint64_t append(std::uint8_t* out, std::uint64_t at, const std::uint8_t* from, std::uint64_t bits) {
  Appender appender(out, at);
  for (; bits >= 48; bits -= 48, from += 6) appender.put(load64(from) & 0xffff'ffff'ffffu, 48);
  appender.put(load64(from) & ((std::uint64_t{1} << bits) - 1), static_cast<unsigned>(bits));
  return appender.finish(out);
}

// Sixteen fields at a time, joined to words of up to 56 bits.
inline void put_fields(Appender& out, __m512i field, std::uint32_t width) {
  const auto shift = [](std::uint32_t bits) { return _mm_cvtsi32_si128(static_cast<int>(bits)); };
  alignas(64) std::uint64_t words[8];
  __m512i joined = _mm512_or_si512(_mm512_and_si512(field, _mm512_set1_epi64(0xffff'ffff)),
                                   _mm512_sll_epi64(_mm512_srli_epi64(field, 32), shift(width)));
  unsigned stride = 1;
  if (4 * width <= 56) {
    joined = _mm512_or_si512(joined, _mm512_bsrli_epi128(_mm512_sll_epi64(joined, shift(2 * width)), 8));
    stride = 2;
  }
  if (8 * width <= 56) {
    const __m512i moved = _mm512_sll_epi64(joined, shift(4 * width));
    joined = _mm512_or_si512(joined, _mm512_alignr_epi64(moved, moved, 2));
    stride = 4;
  }
  _mm512_store_si512(words, joined);
  for (unsigned i = 0; i < 8; i += stride) out.put(words[i], 2 * stride * width);
}

inline __m512i third_of(__m512i x) {
  const __m512i factor = _mm512_set1_epi64(0xaaaa'aaab);
  const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(x, factor), 33);
  const __m512i odd = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor), 33);
  return _mm512_or_si512(even, _mm512_slli_epi64(odd, 32));
}

// The unary codes of sixteen quotients.
inline void put_quotients(Appender& out, __m512i quotient, __mmask16 active) {
  // Place of each one, counted from where these sixteen begin.
  const __m512i place = _mm512_add_epi32(running_sum(quotient), lane_numbers());
  const std::uint32_t last = static_cast<std::uint32_t>(31 - __builtin_clz(active));
  alignas(64) std::uint32_t places[lanes];
  _mm512_store_si512(places, place);
  if (places[last] < 56) [[likely]] {
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i first = _mm512_maskz_sllv_epi64(static_cast<__mmask8>(active), one,
                                                  _mm512_cvtepu32_epi64(_mm512_castsi512_si256(place)));
    const __m512i second = _mm512_maskz_sllv_epi64(
        static_cast<__mmask8>(active >> 8), one, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(place, 1)));
    const auto word = static_cast<std::uint64_t>(_mm512_reduce_or_epi64(_mm512_or_si512(first, second)));
    return out.put(word, places[last] + 1);
  }
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i <= last; ++i) {
    std::uint32_t zeros = places[i] - next;
    for (; zeros >= 48; zeros -= 48) out.put(0, 48);
    out.put(std::uint64_t{1} << zeros, zeros + 1);
    next = places[i] + 1;
  }
}

template <bool thirds>
std::uint64_t encode_part(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative,
                          std::uint8_t* out, std::uint64_t at) {
  alignas(8) std::uint8_t not_first[thirds ? 8 * plane_words : 8];
  alignas(8) std::uint8_t lasts[thirds ? 8 * plane_words : 8];
  alignas(8) std::uint8_t quotients[8 * quotient_words];
  lasts[0] = quotients[0] = 0;
  const std::uint32_t width = part.low_bits + 1;
  const __m512i low_mask = all_lanes((1u << part.low_bits) - 1);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(part.low_bits));
  Appender fields_out(out, at), lasts_out(lasts, 0), quotients_out(quotients, 0);
  __m512i before = all_lanes(part.first - 1);
  for (std::uint32_t e = 0; e < part.count; e += lanes) {
    const std::uint32_t left = part.count - e;
    const __mmask16 active = first_lanes(left);
    const __m512i position = _mm512_maskz_loadu_epi32(active, index + e);
    const __m512i previous = _mm512_alignr_epi32(position, before, 15);
    before = position;
    const __m512i gap = _mm512_maskz_sub_epi32(active, _mm512_sub_epi32(position, previous), all_lanes(1));
    const __m512i sign = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(active, negative + e));
    const __m512i field = _mm512_or_si512(_mm512_and_si512(gap, low_mask), _mm512_sll_epi32(sign, shift));
    __m512i quotient = _mm512_srl_epi32(gap, shift);
    if constexpr (thirds) {
      const __m512i high = quotient;
      quotient = third_of(high);
      const __m512i third =
          _mm512_sub_epi32(high, _mm512_add_epi32(quotient, _mm512_slli_epi32(quotient, 1)));
      const std::uint32_t some = _mm512_test_epi32_mask(third, third);
      const std::uint32_t last = _mm512_test_epi32_mask(third, all_lanes(2));
      const auto bits = static_cast<std::uint16_t>(some);
      __builtin_memcpy(not_first + e / 8, &bits, 2);
      lasts_out.put(_pext_u32(last, some), ones_of(some));
    }
    put_quotients(quotients_out, quotient, active);
    if (left >= lanes) {
      put_fields(fields_out, field, width);
    } else {
      alignas(64) std::uint32_t rest[lanes];
      _mm512_store_si512(rest, field);
      for (std::uint32_t i = 0; i < left; ++i) fields_out.put(rest[i], width);
    }
  }
  at = fields_out.finish(out);
  const std::uint64_t quotients_bits = quotients_out.finish(quotients);
  if constexpr (thirds) {
    at = append(out, at, not_first, part.count);
    at = append(out, at, lasts, lasts_out.finish(lasts));
  }
  return append(out, at, quotients, quotients_bits);
}

std::uint64_t encode(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative,
                     std::uint8_t* out, std::uint64_t at) {
  if (part.low_bits > low_bits_max) return rice_kernels_portable.encode(part, index, negative, out, at);
  return part.thirds ? encode_part<true>(part, index, negative, out, at)
                     : encode_part<false>(part, index, negative, out, at);
}

}  // namespace

extern const RiceKernels rice_kernels_avx512_table;
const RiceKernels rice_kernels_avx512_table{"avx512", encode, decode};

}  // namespace rumor::compress
