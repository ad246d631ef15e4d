// exp, log, cos and sin with equal bits everywhere.
//
// The C library's versions differ in the last bit from one release or machine to the next, which is enough to
// make two runs of one seed part ways. These use only +, -, * and / on doubles, each rounded once (IEEE 754),
// in a fixed order.
// Accuracy: a relative error below 1e-14; plenty, since results are rounded to float or printed.
//
// Method: argument reduction by powers of two, then Taylor (exp, cos) or the series of artanh (log).
#pragma once

#include <cfloat>

namespace rumor::models {

static_assert(FLT_EVAL_METHOD == 0, "doubles must be computed as doubles (32-bit x86: -mfpmath=sse -msse2)");

// e^x. 0 below -700, infinity above 700; NaN for NaN.
double portable_exp(double x);

// Natural logarithm. -infinity for 0, NaN below 0 and for NaN, infinity for infinity. Subnormal x counts as
// 0.
double portable_log(double x);

// cos(pi * x) for x in [0, 1].
double portable_cos_pi(double x);

// Cosine and sine of an angle in radians. Requires: |x| < 2^20.
double portable_cos(double x);
double portable_sin(double x);

// base^exponent by squaring: at most 2 * 64 multiplications.
double portable_power(double base, unsigned long long exponent);

}  // namespace rumor::models
