// Scan kernels for AVX2, alone in their library because only this file may use those instructions.
//
// The scan waits for memory: 32 floats share one branch, since at the densities in use nearly all groups hold
// no candidate, and the vectors are fetched ahead.
#include <immintrin.h>

#include "compress/scan_kernels.h"

namespace rumor::compress {
namespace {

constexpr std::size_t lanes = 8;
constexpr std::size_t group = 4 * lanes;
constexpr std::size_t prefetch_floats = 512;

// Candidate lanes of eight sums as bits. below: cutoff - 1; magnitudes have the top bit off, so signed
// comparison will do.
inline unsigned candidates(__m256 sums, __m256i below) {
  const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(sums), _mm256_set1_epi32(0x7fff'ffff));
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(magnitude, below))));
}

struct Found {
  std::uint32_t* out;
  std::size_t room;
  std::size_t count = 0;

  void add(std::size_t base, unsigned mask) {
    for (; mask != 0; mask &= mask - 1) {
      if (count < room)
        out[count] = static_cast<std::uint32_t>(base) + static_cast<unsigned>(__builtin_ctz(mask));
      ++count;
    }
  }
};

// residual[at ...] of one vector, after the addition where there is one.
template <bool adding>
inline __m256 sum_at(float* residual, const float* delta, std::size_t at) {
  __m256 sums = _mm256_loadu_ps(residual + at);
  if constexpr (adding) {
    sums = _mm256_add_ps(sums, _mm256_loadu_ps(delta + at));
    _mm256_storeu_ps(residual + at, sums);
  }
  return sums;
}

// Without `adding`, residual is only read and delta is not touched.
template <bool adding>
std::size_t scan(float* residual, const float* delta, std::size_t size, std::uint32_t cutoff,
                 std::uint32_t* out, std::size_t room) {
  const __m256i below = _mm256_set1_epi32(static_cast<int>(cutoff - 1));
  Found found{out, room};
  std::size_t i = 0;
  for (; i + group <= size; i += group) {
    if constexpr (adding) {
      _mm_prefetch(reinterpret_cast<const char*>(delta + i) + prefetch_floats * sizeof(float), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(delta + i + 16) + prefetch_floats * sizeof(float),
                   _MM_HINT_T0);
    }
    _mm_prefetch(reinterpret_cast<const char*>(residual + i) + prefetch_floats * sizeof(float), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(residual + i + 16) + prefetch_floats * sizeof(float),
                 _MM_HINT_T0);
    const unsigned first = candidates(sum_at<adding>(residual, delta, i), below);
    const unsigned second = candidates(sum_at<adding>(residual, delta, i + lanes), below);
    const unsigned third = candidates(sum_at<adding>(residual, delta, i + 2 * lanes), below);
    const unsigned fourth = candidates(sum_at<adding>(residual, delta, i + 3 * lanes), below);
    const unsigned mask = first | (second << 8) | (third << 16) | (fourth << 24);
    if (mask != 0) [[unlikely]]
      found.add(i, mask);
  }
  for (; i < size; ++i) {
    float sum = residual[i];
    if constexpr (adding) {
      sum += delta[i];
      residual[i] = sum;
    }
    std::uint32_t bits;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    if ((bits & 0x7fff'ffff) >= cutoff) found.add(i, 1);
  }
  return found.count;
}

std::size_t add_and_collect(float* residual, const float* delta, std::size_t size, std::uint32_t cutoff,
                            std::uint32_t* found, std::size_t room) {
  return scan<true>(residual, delta, size, cutoff, found, room);
}

std::size_t collect(const float* residual, std::size_t size, std::uint32_t cutoff, std::uint32_t* found,
                    std::size_t room) {
  return scan<false>(const_cast<float*>(residual), nullptr, size, cutoff, found, room);
}

}  // namespace

extern const ScanKernels scan_kernels_avx2_table;
const ScanKernels scan_kernels_avx2_table{"avx2", add_and_collect, collect};

}  // namespace rumor::compress
