// Lanes: one vector register of floats at the level that a kernel source is compiled for, KERNEL_LEVEL 0
// (anything), 2 (AVX2 + FMA) or 512 (AVX-512), in the namespace KERNEL_NAMESPACE.
//
// The level decides the width of Lanes and the shape of register blocks, nothing else: each lane carries one
// output element and runs the same chain of operations at every level. + - * / and comparisons are the
// compilers' own, lane by lane; each rounds once. Only kernel sources include this: models/kernels/kernel_table.h
// says why nothing of the standard library may come with it.
#pragma once

#if KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/base/sanitized.h"

// With a check of each access, an unrolled block is minutes of work for clang.
#if defined(RUMOR_SANITIZED)
#define LANES_UNROLL
#elif defined(__clang__)
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

// ---- loads and stores of a vector: all of it, or its first lanes.

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
  LANES_INLINE Lanes load(const float* p) const {
    return _mm512_maskz_loadu_ps(mask(), p);
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
  LANES_INLINE Lanes load(const float* p) const {
    return _mm256_maskload_ps(p, mask());
  }
  LANES_INLINE void store(float* p, Lanes x) const {
    _mm256_maskstore_ps(p, mask(), x);
  }
#else
  LANES_INLINE Lanes load(const float* p, Lanes fill) const {
    for (long i = 0; i < lanes; ++i) fill[i] = p[i];
    return fill;
  }
  LANES_INLINE Lanes load(const float* p) const {
    return load(p, Lanes{});
  }
  LANES_INLINE void store(float* p, Lanes x) const {
    for (long i = 0; i < lanes; ++i) p[i] = x[i];
  }
#endif
};

// body(lanes, at) for every vector of [0, count): `lanes` loads and stores the lanes inside the range.
template <class Body>
LANES_INLINE void each(long count, Body body) {
  long at = 0;
  for (; at + width <= count; at += width) body(Whole{}, at);
  if (at < count) body(First{count - at}, at);
}

}  // namespace lanes
}  // namespace
}  // namespace rumor::models::KERNEL_NAMESPACE
