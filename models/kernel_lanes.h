// Lanes: a register full of floats, for the sources of the kernels.
//
// KERNEL_LEVEL says which instruction set a source is compiled for: 0 (anything), 2 (AVX2 + FMA) or 512
// (AVX-512). The level decides the width of Lanes and the shape of register blocks, nothing else: each lane
// carries one output element and runs the same chain of operations at every level. No std headers here, and
// everything is in an anonymous namespace: models/kernel_table.h says why.
#pragma once

#if KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE inline __attribute__((always_inline))

namespace rumor::models {
namespace {

// Loads, stores and one fused multiply-add. The _part forms touch the first n lanes only, 0 < n < width.

#if KERNEL_LEVEL == 512

using Lanes = __m512;
constexpr long width = 16;
INLINE __mmask16 first(long n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
INLINE Lanes zero() {
  return _mm512_setzero_ps();
}
INLINE Lanes splat(const float* p) {
  return _mm512_set1_ps(*p);
}
INLINE Lanes load(const float* p) {
  return _mm512_loadu_ps(p);
}
INLINE Lanes load_part(const float* p, long n) {
  return _mm512_maskz_loadu_ps(first(n), p);
}
INLINE void store(float* p, Lanes v) {
  _mm512_storeu_ps(p, v);
}
INLINE void store_part(float* p, long n, Lanes v) {
  _mm512_mask_storeu_ps(p, first(n), v);
}
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm512_fmadd_ps(a, b, c);
}

#elif KERNEL_LEVEL == 2

using Lanes = __m256;
constexpr long width = 8;
INLINE __m256i first(long n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
INLINE Lanes zero() {
  return _mm256_setzero_ps();
}
INLINE Lanes splat(const float* p) {
  return _mm256_broadcast_ss(p);
}
INLINE Lanes load(const float* p) {
  return _mm256_loadu_ps(p);
}
INLINE Lanes load_part(const float* p, long n) {
  return _mm256_maskload_ps(p, first(n));
}
INLINE void store(float* p, Lanes v) {
  _mm256_storeu_ps(p, v);
}
INLINE void store_part(float* p, long n, Lanes v) {
  _mm256_maskstore_ps(p, first(n), v);
}
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmadd_ps(a, b, c);
}

#else

struct Lanes {
  float v[4];
};
constexpr long width = 4;
INLINE Lanes zero() {
  return {{0, 0, 0, 0}};
}
INLINE Lanes splat(const float* p) {
  return {{*p, *p, *p, *p}};
}
INLINE Lanes load(const float* p) {
  return {{p[0], p[1], p[2], p[3]}};
}
INLINE Lanes load_part(const float* p, long n) {
  Lanes lanes = zero();
  for (long i = 0; i < n; ++i) lanes.v[i] = p[i];
  return lanes;
}
INLINE void store_part(float* p, long n, Lanes v) {
  for (long i = 0; i < n; ++i) p[i] = v.v[i];
}
INLINE void store(float* p, Lanes v) {
  store_part(p, width, v);
}
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  for (long i = 0; i < width; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return c;
}

#endif

}  // namespace
}  // namespace rumor::models
