// The choice among the sets of kernels, one for the whole process: RUMOR_KERNELS=portable|avx2|avx512 makes a processor
// count as a smaller one in every family of kernels at once.
//
// Every kernel is compiled for several instruction sets, and all sets give equal bits. The choice is about speed alone.
// A family of kernels may lack a set; it then uses the next smaller one.
//
// The operating system is asked, too: where it does not save the wide registers, a processor counts as without them.
//
// Thread: any. Objects that keep a pointer to a set keep it; choose before the first of them is made.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor {

enum class KernelLevel : std::uint8_t {
  portable,  // for every processor, and the reference of the tests
  avx2,      // with FMA
  avx512,    // F, BW, DQ and VL, with BMI2
};

// The highest level that this processor runs.
KernelLevel best_kernel_level();

// The level in use: the chosen one, otherwise the best.
KernelLevel kernel_level();

// Chooses by name; "" goes back to the best. Errors: Errc::usage, naming the levels of this processor; the choice stays
// as it was.
Result<void> choose_kernels(std::string_view name);

// The sets of one family. Null: not built, for that kind of processor or at all.
template <class Kernels>
struct KernelSets {
  const Kernels* portable = nullptr;  // never null
  const Kernels* avx2 = nullptr;
  const Kernels* avx512 = nullptr;

  // The set for `level`, or the next smaller one.
  const Kernels& at(KernelLevel level) const {
    if (level >= KernelLevel::avx512 && avx512 != nullptr) return *avx512;
    if (level >= KernelLevel::avx2 && avx2 != nullptr) return *avx2;
    return *portable;
  }
  const Kernels& chosen() const { return at(kernel_level()); }
  // A set for tests to compare: null where it was not built or this processor does not run it.
  const Kernels* runnable_avx2() const { return best_kernel_level() >= KernelLevel::avx2 ? avx2 : nullptr; }
  const Kernels* runnable_avx512() const { return best_kernel_level() >= KernelLevel::avx512 ? avx512 : nullptr; }
};

}  // namespace rumor
