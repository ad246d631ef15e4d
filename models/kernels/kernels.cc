#include "models/kernels/kernels.h"

#include "runtime/base/kernel_choice.h"

namespace rumor::models {

namespace portable {
extern const KernelTable table;
}
#ifdef RUMOR_X86_KERNELS
namespace avx2 {
extern const KernelTable table;
}
namespace avx512 {
extern const KernelTable table;
}
#endif

namespace {

constexpr KernelSets<KernelTable> table_sets{
    &portable::table,
#ifdef RUMOR_X86_KERNELS
    &avx2::table,
    &avx512::table,
#endif
};

}  // namespace

std::vector<const KernelTable*> kernel_variants() {
  std::vector<const KernelTable*> variants{table_sets.portable};
  for (const KernelTable* wider : {table_sets.runnable_avx2(), table_sets.runnable_avx512()})
    if (wider != nullptr) variants.push_back(wider);
  return variants;
}

const KernelTable& kernels() { return table_sets.chosen(); }

}  // namespace rumor::models
