// What this processor can do, for those who choose between variants of a kernel.
//
// The operating system is asked, too: where it does not save the wide registers, a processor counts as without them.
#pragma once

namespace rumor {

// With FMA.
inline bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// F, BW, DQ and VL, with BMI2.
inline bool has_avx512() {
#if defined(__x86_64__)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace rumor
