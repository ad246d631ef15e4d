#include "models/kernels/kernels.h"

#include <atomic>

#include "runtime/base/cpu.h"
#include "runtime/base/text.h"

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
std::atomic<const KernelTable*> selected{nullptr};
}  // namespace

std::vector<const KernelTable*> kernel_variants() {
  std::vector<const KernelTable*> variants{&portable::table};
#ifdef RUMOR_X86_KERNELS
  if (has_avx2()) variants.push_back(&avx2::table);
  if (has_avx512()) variants.push_back(&avx512::table);
#endif
  return variants;
}

const KernelTable& kernels() {
  const KernelTable* table = selected.load(std::memory_order_acquire);
  if (!table) {
    table = kernel_variants().back();
    selected.store(table, std::memory_order_release);
  }
  return *table;
}

Result<void> select_kernels(std::string_view name) {
  const std::vector<const KernelTable*> variants = kernel_variants();
  if (name.empty()) {
    selected.store(variants.back(), std::memory_order_release);
    return {};
  }
  std::string known;
  for (const KernelTable* table : variants) {
    if (name == table->name) {
      selected.store(table, std::memory_order_release);
      return {};
    }
    known += known.empty() ? table->name : str(", ", table->name);
  }
  return Error{Errc::usage, str("no kernels '", name, "' for this processor; it has: ", known)};
}

}  // namespace rumor::models
