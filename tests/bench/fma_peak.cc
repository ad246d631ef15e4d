#include "tests/bench/fma_peak.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rumor::bench {
namespace {

constexpr int rounds = 4000, chains = 12;
volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double operations_512() {
  __m512 sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  }
  for (int i = 1; i < chains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  sink = _mm512_cvtss_f32(sum[0]);
  return 2.0 * 16 * chains * rounds;
}

__attribute__((target("avx2,fma"))) double operations_256() {
  __m256 sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  }
  for (int i = 1; i < chains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  sink = _mm256_cvtss_f32(sum[0]);
  return 2.0 * 8 * chains * rounds;
}
#endif

double operations_plain() {
  float sum[chains] = {};
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < chains; ++i) sum[i] = sum[i] * 0.999f + 0.001f;
  }
  for (int i = 1; i < chains; ++i) sum[0] += sum[i];
  sink = sum[0];
  return 2.0 * chains * rounds;
}

}  // namespace

double fma_rate() {
  double (*run)() = operations_plain;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) run = operations_256;
  if (__builtin_cpu_supports("avx512f")) run = operations_512;
#endif
  const auto begin = std::chrono::steady_clock::now();
  const double operations = run();
  return operations / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace rumor::bench
