// Functions of one number, with the bits of models/kernels/sequence_lanes.h and
// models/kernels/sequence_kernels_variant.cc: the same operations in the same order, fused where those are fused. nvcc
// fuses nothing by itself (-fmad=false).
#pragma once

#include "gpu/cuda/common.cuh"

namespace rumor::gpu {

// e^x: 0 below -87, e^88 above 88, NaN for NaN. x = n ln 2 + r; Taylor to r^7; n goes into the exponent.
__device__ __forceinline__ float exponential(float x) {
  float bounded = x < -87.0f ? -87.0f : x;
  bounded = bounded > 88.0f ? 88.0f : bounded;
  constexpr float magic = 12582912;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float shifted = fmaf(bounded, 0x1.715476p+0f, magic);
  const float whole = shifted - magic;
  float r = fmaf(whole, -0x1.62e4p-1f, bounded);
  r = fmaf(whole, -0x1.7f7d1cp-20f, r);
  float sum = 1.0f / 5040;
  sum = fmaf(sum, r, 1.0f / 720);
  sum = fmaf(sum, r, 1.0f / 120);
  sum = fmaf(sum, r, 1.0f / 24);
  sum = fmaf(sum, r, 1.0f / 6);
  sum = fmaf(sum, r, 0.5f);
  sum = fmaf(sum, r, 1.0f);
  sum = fmaf(sum, r, 1.0f);
  const float scaled = __uint_as_float(__float_as_uint(sum) + (__float_as_uint(shifted) << 23));
  const float cut = x < -87.0f ? 0.0f : scaled;
  return x != x ? x : cut;
}

// 2^x and the logarithm to base 2 by the special function units: relative errors of about 2^-22, denormals are zeros.
// These are not the CPU's bits: only for results that are rounded to bfloat16, or have a tolerance.
__device__ __forceinline__ float approximate_exp2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
__device__ __forceinline__ float approximate_log2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::log2(x);
#endif
}

// e^x by the special function units: for results that have a tolerance. The relative error is 1e-7 times the magnitude
// of x, and 3e-7 near 0. Minus infinity gives 0.
__device__ __forceinline__ float quick_exponential(float x) {
  return approximate_exp2(x * 0x1.715476p+0f);  // 1 / ln 2
}

// GELU is x times the logistic function of 2 u, u the argument of its tanh; e^(-2 u) = e^(x (a + b x^2)).
constexpr float gelu_a = -1.5957691216057308f, gelu_b = -0.0713548162726f;

__device__ __forceinline__ float gelu_logistic(float x, float square) {
  const float exponent = x * fmaf(square, gelu_b, gelu_a);
  return 1.0f / (1.0f + exponential(exponent > 40.0f ? 40.0f : exponent));
}

__device__ __forceinline__ float gelu(float x) {
  return x * gelu_logistic(x, x * x);
}

__device__ __forceinline__ float gelu_slope(float x) {
  const float square = x * x, s = gelu_logistic(x, square);
  return fmaf(s * (1.0f - s), x * fmaf(square, -3 * gelu_b, -gelu_a), s);
}

}  // namespace rumor::gpu
