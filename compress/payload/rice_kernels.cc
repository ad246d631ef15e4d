// The reference kernels, and the choice among the sets.
#include "compress/payload/rice_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compress/payload/bit_io.h"
#include "runtime/base/kernel_choice.h"

namespace rumor::compress {

#if defined(__x86_64__)
extern const RiceKernels rice_kernels_avx512_table;  // rice_kernels_avx512.cc
#endif

namespace {

constexpr std::uint32_t block = 64;
// A part of 16,384 entries has at most as many thirds, and fewer than three bits of quotient an entry.
constexpr std::uint32_t thirds_words = 16384 / 64 + 1;
constexpr std::uint32_t quotient_words = 3 * 16384 / 64 + 2;

std::uint64_t load_word(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, 8);
  return from_little(word);
}

void store_word(std::uint8_t* bytes, std::uint64_t word) {
  word = from_little(word);
  std::memcpy(bytes, &word, 8);
}

// 64 bits from any bit on.
std::uint64_t bits_at(const std::uint8_t* bytes, std::uint64_t at) {
  const unsigned shift = at & 7;
  const std::uint64_t low = load_word(bytes + (at >> 3)) >> shift;
  return shift == 0 ? low : low | (std::uint64_t{bytes[(at >> 3) + 8]} << (64 - shift));
}

// ---- encode ----

// Appends to a stream: whole words leave as soon as they are full.
struct Appender {
  std::uint8_t* bytes;
  std::uint64_t word;
  unsigned used;

  Appender(std::uint8_t* out, std::uint64_t at) : bytes(out + (at >> 3)), word(*bytes), used(at & 7) {}

  // Requires: width <= 64, value < 2^width.
  void put(std::uint64_t value, unsigned width) {
    word |= value << used;
    const unsigned total = used + width;
    if (total >= 64) {
      store_word(bytes, word);
      bytes += 8;
      word = used == 0 ? 0 : value >> (64 - used);
    }
    used = total & 63;
  }
  std::uint64_t finish(const std::uint8_t* out) {
    store_word(bytes, word);
    return 8 * static_cast<std::uint64_t>(bytes - out) + used;
  }
};

std::uint64_t append(std::uint8_t* out, std::uint64_t at, const std::uint64_t* words, std::uint64_t bits) {
  Appender appender(out, at);
  for (; bits >= 64; bits -= 64) appender.put(*words++, 64);
  if (bits > 0) appender.put(*words & ((std::uint64_t{1} << bits) - 1), static_cast<unsigned>(bits));
  return appender.finish(out);
}

// One bits at growing positions, in words that were never written before.
struct Marks {
  std::uint64_t* words;
  std::uint64_t word = 0;
  std::uint64_t current = 0;  // its number

  void mark(std::uint64_t bit) {
    if ((bit >> 6) != current) [[unlikely]] {
      words[current] = word;
      word = 0;
      while (++current < (bit >> 6)) words[current] = 0;
    }
    word |= std::uint64_t{1} << (bit & 63);
  }
  void finish() { words[current] = word; }
};

template <bool thirds>
std::uint64_t encode_part(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative,
                          std::uint8_t* out, std::uint64_t at) {
  std::uint64_t not_first[thirds ? thirds_words : 1];  // whether the third is not the first
  std::uint64_t last[thirds ? thirds_words + 1 : 1];   // of those: whether it is the last
  std::uint64_t quotients[quotient_words];
  const unsigned low_bits = part.low_bits;
  const unsigned width = low_bits + 1;  // of a field, 31 at most
  const std::uint32_t low_mask = (std::uint32_t{1} << low_bits) - 1;
  Appender fields(out, at);
  last[0] = 0;
  Appender last_out(reinterpret_cast<std::uint8_t*>(last), 0);
  Marks marks{quotients};
  std::uint32_t next = part.first;
  std::uint64_t one = 0;
  std::uint64_t last_bits = 0;
  for (std::uint32_t begin = 0; begin < part.count; begin += block) {
    const std::uint32_t end = std::min(begin + block, part.count);
    std::uint64_t not_first_word = 0, last_word = 0;
    unsigned last_used = 0;
    // Takes one entry apart: returns its field and marks its quotient.
    const auto take = [&](std::uint32_t e) __attribute__((always_inline)) {
      const std::uint32_t gap = index[e] - next;
      next = index[e] + 1;
      const std::uint32_t high = gap >> low_bits;
      if constexpr (thirds) {
        const std::uint32_t quotient = high / 3;
        const std::uint32_t third = high - 3 * quotient;
        const std::uint64_t some = third != 0;
        not_first_word |= some << (e - begin);
        last_word |= std::uint64_t{third >> 1} << (last_used & 63);
        last_used += static_cast<unsigned>(some);
        one += quotient;
      } else {
        one += high;
      }
      marks.mark(one++);
      return std::uint64_t{(gap & low_mask) | (std::uint32_t{negative[e]} << low_bits)};
    };
    std::uint32_t e = begin;
    for (; e + 2 <= end; e += 2) {
      const std::uint64_t first = take(e);
      fields.put(first | take(e + 1) << width, 2 * width);
    }
    if (e < end) fields.put(take(e), width);
    if constexpr (thirds) {
      not_first[begin / block] = not_first_word;
      last_out.put(last_word, last_used);
      last_bits += last_used;
    }
  }
  marks.finish();
  at = fields.finish(out);
  if constexpr (thirds) {
    last_out.finish(reinterpret_cast<std::uint8_t*>(last));
    for (std::uint64_t& word : last) word = from_little(word);
    at = append(out, at, not_first, part.count);
    at = append(out, at, last, last_bits);
  }
  return append(out, at, quotients, one);
}

std::uint64_t encode(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative,
                     std::uint8_t* out, std::uint64_t at) {
  return part.thirds ? encode_part<true>(part, index, negative, out, at)
                     : encode_part<false>(part, index, negative, out, at);
}

// ---- decode ----

// The places of the pieces of a part; quotients == 0 if they do not fit before `end`.
struct Places {
  std::uint64_t not_first = 0, last = 0, quotients = 0;
  std::uint64_t end = 0;  // of the longest quotients that a part in this span has
};

Places places_of(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at, std::uint64_t end) {
  Places places;
  const std::uint64_t count = part.count;
  places.not_first = at + count * (part.low_bits + 1);
  places.last = places.not_first + (part.thirds ? count : 0);
  if (places.last + count > end) return {};
  std::uint64_t lasts = 0;
  if (part.thirds) {
    for (std::uint64_t e = 0; e < count; e += block) {
      std::uint64_t word = bits_at(bytes, places.not_first + e);
      if (count - e < block) word &= (std::uint64_t{1} << (count - e)) - 1;
      lasts += static_cast<unsigned>(std::popcount(word));
    }
  }
  if (places.last + lasts + count > end) return {};
  places.quotients = places.last + lasts;
  const std::uint64_t divisor = std::uint64_t{part.thirds ? 3u : 1u} << part.low_bits;
  places.end = std::min(end, places.quotients + count + (part.span - count) / divisor);
  return places;
}

// Positions are summed in 64 bits, which hold them however wild the quotients are, and only the last is
// compared with the end.
template <bool thirds>
std::uint64_t decode_part(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at,
                          const Places& places, std::uint32_t* index, std::uint8_t* negative) {
  const unsigned low_bits = part.low_bits;
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  std::uint64_t base = places.quotients & ~std::uint64_t{7};
  std::uint64_t word = load_word(bytes + (base >> 3)) & (~std::uint64_t{0} << (places.quotients & 7));
  std::uint64_t next_one = places.quotients;
  std::uint64_t next = part.first;
  std::uint64_t last_at = places.last;
  for (std::uint32_t begin = 0; begin < part.count; begin += block) {
    const std::uint32_t end = std::min(begin + block, part.count);
    std::uint64_t not_first = 0, last = 0;
    if constexpr (thirds) {
      not_first = bits_at(bytes, places.not_first + begin);
      if (end - begin < block) not_first &= (std::uint64_t{1} << (end - begin)) - 1;
      last = bits_at(bytes, last_at);
      last_at += static_cast<unsigned>(std::popcount(not_first));
    }
    for (std::uint32_t e = begin; e < end; ++e) {
      while (word == 0) {
        base += 64;
        if (base >= places.end) return 0;
        word = load_word(bytes + (base >> 3));
      }
      const std::uint64_t one = base + static_cast<unsigned>(std::countr_zero(word));
      word &= word - 1;
      std::uint64_t high = one - next_one;
      next_one = one + 1;
      if constexpr (thirds) {
        const std::uint64_t some = not_first & 1;
        high = 3 * high + some + (some & last);
        last >>= some;
        not_first >>= 1;
      }
      const std::uint64_t field = load_word(bytes + (at >> 3)) >> (at & 7);
      at += low_bits + 1;
      const std::uint64_t position = next + (high << low_bits) + (field & low_mask);
      next = position + 1;
      index[e] = static_cast<std::uint32_t>(position);
      negative[e] = (field >> low_bits) & 1;
    }
  }
  if (next_one > places.end || next > std::uint64_t{part.first} + part.span) return 0;
  return next_one;
}

std::uint64_t decode(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at, std::uint64_t end,
                     std::uint32_t* index, std::uint8_t* negative) {
  const Places places = places_of(part, bytes, at, end);
  if (places.quotients == 0) return 0;
  return part.thirds ? decode_part<true>(part, bytes, at, places, index, negative)
                     : decode_part<false>(part, bytes, at, places, index, negative);
}

}  // namespace

const RiceKernels rice_kernels_portable{"portable", encode, decode};

namespace {

constexpr KernelSets<RiceKernels> rice_sets{
    .portable = &rice_kernels_portable,
#if defined(__x86_64__)
    .avx512 = &rice_kernels_avx512_table,
#endif
};

}  // namespace

const RiceKernels* rice_kernels_avx512() { return rice_sets.runnable_avx512(); }
const RiceKernels& rice_kernels() { return rice_sets.chosen(); }

}  // namespace rumor::compress
