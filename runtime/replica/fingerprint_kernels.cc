// The choice among the sets of kernels. The kernels themselves: fingerprint_kernels_variant.cc.
#include "runtime/replica/fingerprint_kernels.h"

#include "runtime/base/kernel_choice.h"

namespace rumor {

#if defined(__x86_64__)
extern const FingerprintKernels fingerprint_kernels_avx2_table, fingerprint_kernels_avx512_table;
#endif

namespace {

constexpr KernelSets<FingerprintKernels> fingerprint_sets{
    &fingerprint_kernels_portable,
#if defined(__x86_64__)
    &fingerprint_kernels_avx2_table,
    &fingerprint_kernels_avx512_table,
#endif
};

}  // namespace

const FingerprintKernels* fingerprint_kernels_avx2() { return fingerprint_sets.runnable_avx2(); }
const FingerprintKernels* fingerprint_kernels_avx512() { return fingerprint_sets.runnable_avx512(); }
const FingerprintKernels& fingerprint_kernels() { return fingerprint_sets.chosen(); }

}  // namespace rumor
