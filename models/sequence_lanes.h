// Lanes: one vector register of floats at the level that a kernel source is compiled for, KERNEL_LEVEL 0
// (anything), 2 (AVX2 + FMA) or 512 (AVX-512), in the namespace KERNEL_NAMESPACE.
//
// Only kernel sources include this (models/kernel_table.h says why nothing of the standard library may come
// with it). + - * / and comparisons are the compilers' own, lane by lane; each rounds once at every level.
//
// What meets its neighbours, a sum or a maximum over a row, does so in the same order at every level: element
// i belongs to partial result i mod 16, and the sixteen are joined in halves (sum_over, maximum_over).
#pragma once

#if KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#if defined(__clang__)
#define LANES_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LANES_UNROLL _Pragma("GCC unroll 16")
#endif
#define LANES_INLINE inline __attribute__((always_inline))

namespace rumor::models::KERNEL_NAMESPACE {
namespace {
namespace lanes {

#if KERNEL_LEVEL == 512
using Lanes = __m512;
constexpr long width = 16;
#elif KERNEL_LEVEL == 2
using Lanes = __m256;
constexpr long width = 8;
#else
typedef float Lanes __attribute__((vector_size(16)));
constexpr long width = 4;
#endif
typedef unsigned Words __attribute__((vector_size(width * 4)));

LANES_INLINE Lanes splat(float x) {
#if KERNEL_LEVEL == 512
  return _mm512_set1_ps(x);
#elif KERNEL_LEVEL == 2
  return _mm256_set1_ps(x);
#else
  return Lanes{x, x, x, x};
#endif
}

// a * b + c, rounded once.
LANES_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
#if KERNEL_LEVEL == 512
  return _mm512_fmadd_ps(a, b, c);
#elif KERNEL_LEVEL == 2
  return _mm256_fmadd_ps(a, b, c);
#else
  for (long i = 0; i < width; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

LANES_INLINE Words bits_of(Lanes x) {
  return reinterpret_cast<Words>(x);
}
LANES_INLINE Lanes of_bits(Words x) {
  return reinterpret_cast<Lanes>(x);
}

// ---- where a vector comes from and goes to: all of it, or its first lanes.

struct Whole {
  LANES_INLINE Lanes load(const float* p, Lanes) const {
    Lanes x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  LANES_INLINE Lanes load(const float* p) const { return load(p, Lanes{}); }
  LANES_INLINE void store(float* p, Lanes x) const { __builtin_memcpy(p, &x, sizeof x); }
};

struct First {
  long lanes;  // 0 to width; the others are never touched

#if KERNEL_LEVEL == 512
  LANES_INLINE __mmask16 mask() const {
    return static_cast<__mmask16>((1u << lanes) - 1);
  }
  LANES_INLINE Lanes load(const float* p, Lanes fill) const {
    return _mm512_mask_loadu_ps(fill, mask(), p);
  }
  LANES_INLINE void store(float* p, Lanes x) const {
    _mm512_mask_storeu_ps(p, mask(), x);
  }
#elif KERNEL_LEVEL == 2
  LANES_INLINE __m256i mask() const {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), lane);
  }
  LANES_INLINE Lanes load(const float* p, Lanes fill) const {
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask()), _mm256_castsi256_ps(mask()));
  }
  LANES_INLINE void store(float* p, Lanes x) const {
    _mm256_maskstore_ps(p, mask(), x);
  }
#else
  LANES_INLINE Lanes load(const float* p, Lanes fill) const {
    for (long i = 0; i < lanes; ++i) fill[i] = p[i];
    return fill;
  }
  LANES_INLINE void store(float* p, Lanes x) const {
    for (long i = 0; i < lanes; ++i) p[i] = x[i];
  }
#endif
  LANES_INLINE Lanes load(const float* p) const {
    return load(p, Lanes{});
  }
};

// body(lanes, at) for every vector of [0, count): `lanes` loads and stores what there is of it.
template <class Body>
LANES_INLINE void each(long count, Body body) {
  long at = 0;
  for (; at + width <= count; at += width) body(Whole{}, at);
  if (at < count) body(First{count - at}, at);
}

// ---- sixteen partial results

constexpr long parts = 16 / width;

struct Sixteen {
  Lanes part[parts];
};

// Joins element i with element i + 8, then + 4, + 2, + 1.
template <class Join>
LANES_INLINE float join_all(const Sixteen& all, Join join) {
  float x[16];
  LANES_UNROLL for (long p = 0; p < parts; ++p) Whole{}.store(x + p * width, all.part[p]);
  for (long half = 8; half > 0; half /= 2) {
    for (long i = 0; i < half; ++i) x[i] = join(x[i], x[i + half]);
  }
  return x[0];
}

template <class Step>
LANES_INLINE void over(long count, Step step) {
  long at = 0;
  for (; at + 16 <= count; at += 16) {
    LANES_UNROLL for (long p = 0; p < parts; ++p) step(Whole{}, at + p * width, p);
  }
  for (long p = 0; at < count; at += width, ++p) step(First{count - at < width ? count - at : width}, at, p);
}

// term(lanes, at): must be zero, of either sign, in lanes that are not there.
template <class Term>
LANES_INLINE float sum_over(long count, Term term) {
  Sixteen sums{};
  over(count, [&](auto lanes, long at, long p) { sums.part[p] = sums.part[p] + term(lanes, at); });
  return join_all(sums, [](float a, float b) { return a + b; });
}

// The largest of x, NaNs passed over; minus infinity when there is none.
LANES_INLINE float maximum_over(long count, const float* x) {
  const Lanes least = splat(-__builtin_inff());
  Sixteen top;
  LANES_UNROLL for (long p = 0; p < parts; ++p) top.part[p] = least;
  over(count, [&](auto lanes, long at, long p) {
    const Lanes next = lanes.load(x + at, least);
    top.part[p] = next > top.part[p] ? next : top.part[p];
  });
  return join_all(top, [](float a, float b) { return b > a ? b : a; });
}

// e^x, with a relative error below 2e-7: 0 below -87, as at 88 above 88, NaN for NaN.
// x = n ln 2 + r, |r| <= 0.35; e^r by its Taylor series to r^7; n goes into the exponent.
LANES_INLINE Lanes exponential(Lanes x) {
  const Lanes low = splat(-87), high = splat(88);
  Lanes bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;
  // Adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits.
  const Lanes magic = splat(12582912);
  const Lanes shifted = fma(bounded, splat(0x1.715476p+0f), magic);  // 1 / ln 2
  const Lanes whole = shifted - magic;
  Lanes r = fma(whole, splat(-0x1.62e4p-1f), bounded);  // ln 2, its first 16 bits, then the rest
  r = fma(whole, splat(-0x1.7f7d1cp-20f), r);
  Lanes sum = splat(1.0f / 5040);
  sum = fma(sum, r, splat(1.0f / 720));
  sum = fma(sum, r, splat(1.0f / 120));
  sum = fma(sum, r, splat(1.0f / 24));
  sum = fma(sum, r, splat(1.0f / 6));
  sum = fma(sum, r, splat(0.5f));
  sum = fma(sum, r, splat(1));
  sum = fma(sum, r, splat(1));
  const Lanes scaled = of_bits(bits_of(sum) + (bits_of(shifted) << 23));
  const Lanes cut = x < low ? Lanes{} : scaled;
  return x != x ? x : cut;
}

}  // namespace lanes
}  // namespace
}  // namespace rumor::models::KERNEL_NAMESPACE
