// The choice among the sets of kernels. The kernels themselves: fingerprint_kernels_variant.cc.
#include "runtime/replica/fingerprint_kernels.h"

#include "runtime/base/cpu.h"

namespace rumor {

#if defined(__x86_64__)
extern const FingerprintKernels fingerprint_kernels_avx2_table;
extern const FingerprintKernels fingerprint_kernels_avx512_table;
#endif

const FingerprintKernels* fingerprint_kernels_avx2() {
#if defined(__x86_64__)
  return has_avx2() ? &fingerprint_kernels_avx2_table : nullptr;
#else
  return nullptr;
#endif
}

const FingerprintKernels* fingerprint_kernels_avx512() {
#if defined(__x86_64__)
  return has_avx512() ? &fingerprint_kernels_avx512_table : nullptr;
#else
  return nullptr;
#endif
}

const FingerprintKernels& fingerprint_kernels() {
  if (const FingerprintKernels* avx512 = fingerprint_kernels_avx512()) return *avx512;
  if (const FingerprintKernels* avx2 = fingerprint_kernels_avx2()) return *avx2;
  return fingerprint_kernels_portable;
}

}  // namespace rumor
