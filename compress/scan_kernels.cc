// The reference kernels, and the choice among the sets.
#include "compress/scan_kernels.h"

#include <bit>

namespace rumor::compress {

#if defined(__x86_64__)
extern const ScanKernels scan_kernels_avx2_table;  // scan_kernels_avx2.cc
#endif

namespace {

constexpr std::uint32_t magnitude_mask = 0x7fff'ffff;

std::size_t collect(const float* residual, std::size_t size, std::uint32_t cutoff, std::uint32_t* found,
                    std::size_t room) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if ((std::bit_cast<std::uint32_t>(residual[i]) & magnitude_mask) < cutoff) continue;
    if (count < room) found[count] = static_cast<std::uint32_t>(i);
    ++count;
  }
  return count;
}

std::size_t add_and_collect(float* residual, const float* delta, std::size_t size, std::uint32_t cutoff,
                            std::uint32_t* found, std::size_t room) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const float sum = residual[i] + delta[i];
    residual[i] = sum;
    if ((std::bit_cast<std::uint32_t>(sum) & magnitude_mask) < cutoff) continue;
    if (count < room) found[count] = static_cast<std::uint32_t>(i);
    ++count;
  }
  return count;
}

}  // namespace

const ScanKernels scan_kernels_portable{"portable", add_and_collect, collect};

const ScanKernels* scan_kernels_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") ? &scan_kernels_avx2_table : nullptr;
#else
  return nullptr;
#endif
}

const ScanKernels& scan_kernels() {
  const ScanKernels* avx2 = scan_kernels_avx2();
  return avx2 != nullptr ? *avx2 : scan_kernels_portable;
}

}  // namespace rumor::compress
