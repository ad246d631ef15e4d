// The choice among the sets of kernels. The kernels themselves: scan_kernels_variant.cc.
#include "compress/select/scan_kernels.h"

#include "runtime/base/kernel_choice.h"

namespace rumor::compress {

#if defined(__x86_64__)
extern const ScanKernels scan_kernels_avx2_table, scan_kernels_avx512_table;
#endif

namespace {

constexpr KernelSets<ScanKernels> scan_sets{
    &scan_kernels_portable,
#if defined(__x86_64__)
    &scan_kernels_avx2_table,
    &scan_kernels_avx512_table,
#endif
};

}  // namespace

const ScanKernels* scan_kernels_avx2() { return scan_sets.runnable_avx2(); }
const ScanKernels* scan_kernels_avx512() { return scan_sets.runnable_avx512(); }
const ScanKernels& scan_kernels() { return scan_sets.chosen(); }

}  // namespace rumor::compress
