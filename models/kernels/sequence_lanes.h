// Row kernels on Lanes (models/kernels/kernel_lanes.h): sums, maxima and exponentials.
//
// A sum or a maximum over a row is computed in the same order at every level: element i belongs to partial result
// i mod 16, and the sixteen are joined in halves (sum_over, maximum_over).
#pragma once

#include "models/kernels/kernel_lanes.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {
namespace lanes {

typedef unsigned Words __attribute__((vector_size(width * 4)));

LANES_INLINE Words bits_of(Lanes x) {
  return reinterpret_cast<Words>(x);
}
LANES_INLINE Lanes of_bits(Words x) {
  return reinterpret_cast<Lanes>(x);
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
  // Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits.
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
