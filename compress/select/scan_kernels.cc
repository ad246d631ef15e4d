// The choice among the sets of kernels. The kernels themselves: scan_kernels_variant.cc.
#include "compress/select/scan_kernels.h"

#include "runtime/base/cpu.h"

namespace rumor::compress {

#if defined(__x86_64__)
extern const ScanKernels scan_kernels_avx2_table;
extern const ScanKernels scan_kernels_avx512_table;
#endif

const ScanKernels* scan_kernels_avx2() {
#if defined(__x86_64__)
  return has_avx2() ? &scan_kernels_avx2_table : nullptr;
#else
  return nullptr;
#endif
}

const ScanKernels* scan_kernels_avx512() {
#if defined(__x86_64__)
  return has_avx512() ? &scan_kernels_avx512_table : nullptr;
#else
  return nullptr;
#endif
}

const ScanKernels& scan_kernels() {
  if (const ScanKernels* avx512 = scan_kernels_avx512()) return *avx512;
  if (const ScanKernels* avx2 = scan_kernels_avx2()) return *avx2;
  return scan_kernels_portable;
}

}  // namespace rumor::compress
