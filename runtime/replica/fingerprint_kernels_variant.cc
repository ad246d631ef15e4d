// The fingerprint kernels, compiled once per instruction set: FINGERPRINT_LEVEL 0 (anything), 2 (AVX2), 512 (AVX-512).
// The compiler makes the lanes: 64-bit products are what it costs, one instruction with AVX-512, three with AVX2.
#include "runtime/replica/fingerprint_kernels.h"

#include "runtime/base/mix64.h"

namespace rumor {
namespace {

constexpr std::uint64_t both_odd = 0x0000'0001'0000'0001u;

LaneSums weights(std::uint64_t seed, std::uint32_t first, const std::int32_t* values, std::size_t count) {
  // In 64 bits, of which the lower 32 count.
  std::uint64_t low = 0, high = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t r = mix64(seed + (first + i)) | both_odd;
    const std::uint64_t value = static_cast<std::uint32_t>(values[i]);
    low += value * r;
    high += value * (r >> 32);
  }
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
}

LaneSums entries(std::uint64_t seed, const std::uint32_t* index, const std::uint8_t* negative, std::size_t count) {
  std::uint64_t low = 0, high = 0;
  for (std::size_t e = 0; e < count; ++e) {
    const std::uint64_t r = mix64(seed + index[e]) | both_odd;
    const std::uint64_t minus = 0 - std::uint64_t{negative[e]};  // all ones: x becomes -x - 1, and the 1 is added
    low += (r ^ minus) + negative[e];
    high += ((r >> 32) ^ minus) + negative[e];
  }
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high)};
}

}  // namespace

#if FINGERPRINT_LEVEL == 0
extern const FingerprintKernels fingerprint_kernels_portable{"portable", weights, entries};
#elif FINGERPRINT_LEVEL == 2
extern const FingerprintKernels fingerprint_kernels_avx2_table;
const FingerprintKernels fingerprint_kernels_avx2_table{"avx2", weights, entries};
#else
extern const FingerprintKernels fingerprint_kernels_avx512_table;
const FingerprintKernels fingerprint_kernels_avx512_table{"avx512", weights, entries};
#endif

}  // namespace rumor
