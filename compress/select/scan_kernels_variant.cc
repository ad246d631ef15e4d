// The scan kernels, compiled once per instruction set: SCAN_LEVEL 0 (anything), 2 (AVX2) or 512 (AVX-512).
//
// The level decides only the width of `Lanes` and how candidates are taken out of them. Everything but the table is in
// an anonymous namespace, and no library header is included: the linker must not take a function of this file for one
// of another.
//
// The pass waits for memory. So lines are fetched a fixed distance ahead. Candidates are found as bits first and
// written down afterwards, without a branch for each. A candidate is written down with its value, so that choosing
// among candidates does not touch the residual again.
#include "compress/select/scan_kernels.h"

#if SCAN_LEVEL > 0
#include <immintrin.h>
#endif

#if SCAN_LEVEL == 0
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
#define INLINE inline __attribute__((always_inline))

namespace rumor::compress {
namespace {

constexpr std::size_t ahead_bytes = 2048;

INLINE std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

INLINE std::uint32_t magnitude_of(float value) {
  return bits_of(value) & 0x7fff'ffff;
}

// ---- One: a single float, for the ends of a range and as the lanes of the portable set.

struct One {
  float v;
  One() = default;
  explicit INLINE One(float value) : v(value) {}
  static INLINE One load(const float* p) { return One(*p); }
  static INLINE One load(const std::uint16_t* p) {
    const std::uint32_t bits = std::uint32_t{*p} << 16;
    One one;
    __builtin_memcpy(&one.v, &bits, sizeof bits);
    return one;
  }
  INLINE void store(float* p) const { *p = v; }
};
INLINE One operator+(One a, One b) { return One(a.v + b.v); }
INLINE One operator*(One a, One b) { return One(a.v * b.v); }
INLINE One operator/(One a, One b) { return One(a.v / b.v); }
INLINE One square_root(One a) { return One(__builtin_sqrtf(a.v)); }
INLINE One larger(One a, One b) { return One(a.v > b.v ? a.v : b.v); }

// ---- Lanes, and which of a group of 64 are candidates: over(). Magnitudes have the top bit off, so signed
// comparison will do.

#if SCAN_LEVEL == 512

struct Lanes {
  __m512 v;
  Lanes() = default;
  explicit INLINE Lanes(__m512 value) : v(value) {}
  explicit INLINE Lanes(float value) : v(_mm512_set1_ps(value)) {}
  static INLINE Lanes load(const float* p) { return Lanes(_mm512_loadu_ps(p)); }
  static INLINE Lanes load(const std::uint16_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return Lanes(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)));
  }
  INLINE void store(float* p) const { _mm512_storeu_ps(p, v); }
};
INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(_mm512_add_ps(a.v, b.v)); }
INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(_mm512_mul_ps(a.v, b.v)); }
INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(_mm512_div_ps(a.v, b.v)); }
INLINE Lanes square_root(Lanes a) { return Lanes(_mm512_sqrt_ps(a.v)); }
INLINE Lanes larger(Lanes a, Lanes b) { return Lanes(_mm512_max_ps(a.v, b.v)); }

constexpr std::size_t width = 16, vectors = 4;
#define TABLE scan_kernels_avx512_table
#define NAME "avx512"

INLINE __m512i magnitudes(__m512 value) {
  return _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fff'ffff));
}

INLINE std::uint64_t over(const Lanes (&sums)[vectors], std::uint32_t cutoff) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(cutoff));
  std::uint64_t mask = 0;
  UNROLL for (std::size_t v = 0; v < vectors; ++v) {
    mask |= std::uint64_t{_mm512_cmpge_epi32_mask(magnitudes(sums[v].v), least)} << (v * width);
  }
  return mask;
}

#elif SCAN_LEVEL == 2

struct Lanes {
  __m256 v;
  Lanes() = default;
  explicit INLINE Lanes(__m256 value) : v(value) {}
  explicit INLINE Lanes(float value) : v(_mm256_set1_ps(value)) {}
  static INLINE Lanes load(const float* p) { return Lanes(_mm256_loadu_ps(p)); }
  static INLINE Lanes load(const std::uint16_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return Lanes(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)));
  }
  INLINE void store(float* p) const { _mm256_storeu_ps(p, v); }
};
INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(_mm256_add_ps(a.v, b.v)); }
INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(_mm256_mul_ps(a.v, b.v)); }
INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(_mm256_div_ps(a.v, b.v)); }
INLINE Lanes square_root(Lanes a) { return Lanes(_mm256_sqrt_ps(a.v)); }
INLINE Lanes larger(Lanes a, Lanes b) { return Lanes(_mm256_max_ps(a.v, b.v)); }

constexpr std::size_t width = 8, vectors = 8;
#define TABLE scan_kernels_avx2_table
#define NAME "avx2"

INLINE __m256i magnitudes(__m256 value) {
  return _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fff'ffff));
}

INLINE std::uint32_t lane_bits(__m256i mask) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

INLINE std::uint64_t over(const Lanes (&sums)[vectors], std::uint32_t cutoff) {
  const __m256i below = _mm256_set1_epi32(static_cast<int>(cutoff - 1));
  std::uint64_t mask = 0;
  UNROLL for (std::size_t v = 0; v < vectors; ++v) {
    mask |= std::uint64_t{lane_bits(_mm256_cmpgt_epi32(magnitudes(sums[v].v), below))} << (v * width);
  }
  return mask;
}

#else

using Lanes = One;
constexpr std::size_t width = 1, vectors = 64;
#define TABLE scan_kernels_portable
#define NAME "portable"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "flags are read eight at a time, the first lowest");

INLINE std::uint64_t over(const Lanes (&sums)[vectors], std::uint32_t cutoff) {
  std::uint8_t flags[vectors];
  std::uint32_t any = 0;
  for (std::size_t v = 0; v < vectors; ++v) any |= magnitude_of(sums[v].v) >= cutoff ? 1u : 0u;
  if (any == 0) return 0;
  for (std::size_t v = 0; v < vectors; ++v) flags[v] = magnitude_of(sums[v].v) >= cutoff ? 1 : 0;
  std::uint64_t mask = 0;
  for (std::size_t eight = 0; eight < vectors / 8; ++eight) {
    std::uint64_t bytes;
    __builtin_memcpy(&bytes, flags + 8 * eight, sizeof bytes);
    mask |= (bytes * 0x0102'0408'1020'4080u >> 56) << (8 * eight);  // one bit from each byte
  }
  return mask;
}

#endif

// ---- Sources: the change of the parameters from i on, for Lanes or for One.

template <class T>
INLINE void fetch_group(const T* from) {
  UNROLL for (std::size_t byte = 0; byte < vectors * width * sizeof(T); byte += 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(from) + ahead_bytes + byte);
  }
}

struct None {
  static constexpr bool adds = false;
  template <class L>
  static INLINE L change(const ScanInput&, std::size_t) { return L(0.0f); }
  static INLINE void fetch(const ScanInput&, std::size_t) {}
};

struct Floats {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) { return L::load(in.change + i); }
  static INLINE void fetch(const ScanInput& in, std::size_t i) { fetch_group(in.change + i); }
};

struct Bf16 {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) { return L::load(in.bf16 + i); }
  static INLINE void fetch(const ScanInput& in, std::size_t i) { fetch_group(in.bf16 + i); }
};

struct Sgd : Floats {
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    return step_rule::sgd(in.rule, L::load(in.change + i));
  }
};

struct Momentum {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    L first = L::load(in.rule.first + i);
    const L change = step_rule::momentum(in.rule, L::load(in.change + i), first);
    first.store(in.rule.first + i);
    return change;
  }
  static INLINE void fetch(const ScanInput& in, std::size_t i) {
    fetch_group(in.change + i);
    fetch_group(in.rule.first + i);
  }
};

struct RmsProp {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    L second = L::load(in.rule.second + i);
    const L change = step_rule::rmsprop(in.rule, L::load(in.change + i), second);
    second.store(in.rule.second + i);
    return change;
  }
  static INLINE void fetch(const ScanInput& in, std::size_t i) {
    fetch_group(in.change + i);
    fetch_group(in.rule.second + i);
  }
};

struct Adam {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    L first = L::load(in.rule.first + i), second = L::load(in.rule.second + i);
    const L change = step_rule::adam(in.rule, L::load(in.change + i), first, second);
    first.store(in.rule.first + i);
    second.store(in.rule.second + i);
    return change;
  }
  static INLINE void fetch(const ScanInput& in, std::size_t i) {
    Momentum::fetch(in, i);
    fetch_group(in.rule.second + i);
  }
};

template <bool nesterov>
struct AdamWith {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    L first = L::load(in.rule.first + i), second = L::load(in.rule.second + i);
    const L gradient = L::load(in.change + i), weight = L::load(in.rule.weights + i);
    const L change = nesterov ? step_rule::nadamw(in.rule, gradient, first, second, weight)
                              : step_rule::adamw(in.rule, gradient, first, second, weight);
    first.store(in.rule.first + i);
    second.store(in.rule.second + i);
    return change;
  }
  static INLINE void fetch(const ScanInput& in, std::size_t i) {
    Adam::fetch(in, i);
    fetch_group(in.rule.weights + i);
  }
};

using AdamW = AdamWith<false>;
using NadamW = AdamWith<true>;

struct AdaptiveRevision {
  static constexpr bool adds = true;
  template <class L>
  static INLINE L change(const ScanInput& in, std::size_t i) {
    L z = L::load(in.rule.first + i), top = L::load(in.rule.second + i), last = L::load(in.rule.last + i);
    const L change = step_rule::adaptive_revision(in.rule, L::load(in.change + i), z, top, last);
    z.store(in.rule.first + i);
    top.store(in.rule.second + i);
    last.store(in.rule.last + i);
    return change;
  }
  static INLINE void fetch(const ScanInput& in, std::size_t i) {
    Adam::fetch(in, i);
    fetch_group(in.rule.last + i);
  }
};

// ---- The pass.

template <class Source, class L>
INLINE L sum_at(const ScanInput& in, std::size_t i) {
  L sum = L::load(in.residual + i);
  if constexpr (Source::adds) {
    sum = sum + Source::template change<L>(in, i);
    sum.store(in.residual + i);
  }
  return sum;
}

template <class Source>
INLINE std::size_t scan_ends(const ScanInput& in, std::size_t begin, std::size_t end, std::uint32_t cutoff,
                             std::uint32_t* index, float* value) {
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const float sum = sum_at<Source, One>(in, i).v;
    index[count] = static_cast<std::uint32_t>(i);
    value[count] = sum;
    count += magnitude_of(sum) >= cutoff;
  }
  return count;
}

// Where the first whole cache line of the residual begins: stores across two lines cost twice.
INLINE std::size_t first_line(const float* residual, std::size_t begin, std::size_t end) {
  const std::size_t over = reinterpret_cast<std::uintptr_t>(residual + begin) / sizeof(float) % 16;
  const std::size_t aligned = over == 0 ? begin : begin + 16 - over;
  return aligned < end ? aligned : end;
}

constexpr std::size_t group = vectors * width;
static_assert(group == 64, "a group's candidates are the bits of one word");
constexpr std::size_t block_groups = 16;

// Writes down the candidates of a block from their bits, four at a time, whatever their number: the excess is
// overwritten. Random branches would cost more than all the rest.
INLINE std::size_t take(const float* residual, std::size_t at, const std::uint64_t* over_bits, std::uint32_t groups,
                        std::uint32_t* index, float* value) {
  constexpr std::uint64_t last_lane = std::uint64_t{1} << 63;
  std::size_t count = 0;
  for (; groups != 0; groups &= groups - 1) {
    const auto g = static_cast<std::size_t>(__builtin_ctz(groups));
    const std::size_t base = at + g * group;
    std::uint64_t bits = over_bits[g];
    std::size_t left = static_cast<std::size_t>(__builtin_popcountll(bits));
    for (;;) {
      UNROLL for (std::size_t c = 0; c < 4; ++c) {
        const std::size_t i = base + static_cast<std::size_t>(__builtin_ctzll(bits | last_lane));
        index[count + c] = static_cast<std::uint32_t>(i);
        value[count + c] = residual[i];
        bits &= bits - 1;
      }
      if (left <= 4) break;
      count += 4;
      left -= 4;
    }
    count += left;
  }
  return count;
}

template <class Source>
std::size_t scan(const ScanInput& input, std::size_t begin, std::size_t end, std::uint32_t cutoff,
                 std::uint32_t* index, float* value) {
  const ScanInput in = input;  // a copy of our own: nothing we write can change it
  std::size_t i = first_line(in.residual, begin, end);
  std::size_t count = scan_ends<Source>(in, begin, i, cutoff, index, value);
  while (i + group <= end) {
    const std::size_t at = i;
    std::uint64_t over_bits[block_groups];
    std::uint32_t groups = 0;
    for (std::size_t g = 0; g < block_groups && i + group <= end; ++g, i += group) {
      Source::fetch(in, i);
      fetch_group(in.residual + i);
      Lanes sums[vectors];
      UNROLL for (std::size_t v = 0; v < vectors; ++v) sums[v] = sum_at<Source, Lanes>(in, i + v * width);
      over_bits[g] = over(sums, cutoff);
      groups |= (over_bits[g] != 0 ? 1u : 0u) << g;
    }
    count += take(in.residual, at, over_bits, groups, index + count, value + count);
  }
  return count + scan_ends<Source>(in, i, end, cutoff, index + count, value + count);
}

// ---- Among the candidates.

std::size_t between(const float* value, std::size_t count, std::uint32_t low, std::uint32_t high,
                    std::uint32_t* bits) {
  std::size_t found = 0, i = 0;
#if SCAN_LEVEL == 512
  const __m512i least = _mm512_set1_epi32(static_cast<int>(low));
  const __m512i most = _mm512_set1_epi32(static_cast<int>(high - 1));
  for (; i + width <= count; i += width) {
    const __m512i magnitude = magnitudes(_mm512_loadu_ps(value + i));
    const __mmask16 mask =
        _mm512_mask_cmple_epi32_mask(_mm512_cmpge_epi32_mask(magnitude, least), magnitude, most);
    _mm512_storeu_si512(bits + found, _mm512_maskz_compress_epi32(mask, magnitude));
    found += static_cast<std::size_t>(__builtin_popcount(mask));
  }
#endif
  for (; i < count; ++i) {
    const std::uint32_t magnitude = magnitude_of(value[i]);
    bits[found] = magnitude;
    found += (magnitude >= low) & (magnitude < high);
  }
  return found;
}

void keep(const std::uint32_t* index, const float* value, std::size_t count, std::uint32_t threshold,
          std::size_t kept, std::uint32_t* out_index, std::uint8_t* out_negative) {
  std::size_t done = 0, i = 0;
#if SCAN_LEVEL == 512
  const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
  for (; i + width <= count; i += width) {
    const __m512 values = _mm512_loadu_ps(value + i);
    const __mmask16 mask = _mm512_cmpge_epi32_mask(magnitudes(values), least);
    const int taken = __builtin_popcount(mask);
    const auto first = static_cast<__mmask16>((1u << taken) - 1);
    const __m512i signs = _mm512_srli_epi32(_mm512_castps_si512(values), 31);
    _mm512_mask_storeu_epi32(out_index + done, first,
                             _mm512_maskz_compress_epi32(mask, _mm512_loadu_si512(index + i)));
    _mm_mask_storeu_epi8(out_negative + done, first,
                         _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(mask, signs)));
    done += static_cast<std::size_t>(taken);
  }
#endif
  for (; done < kept && i < count; ++i) {
    out_index[done] = index[i];
    out_negative[done] = static_cast<std::uint8_t>(bits_of(value[i]) >> 31);
    done += magnitude_of(value[i]) >= threshold;
  }
}

}  // namespace

extern const ScanKernels TABLE;
const ScanKernels TABLE{
    NAME,
    {scan<None>, scan<Floats>, scan<Bf16>, scan<Sgd>, scan<Momentum>, scan<RmsProp>, scan<Adam>,
     scan<AdamW>, scan<NadamW>, scan<AdaptiveRevision>},
    between,
    keep};

}  // namespace rumor::compress
