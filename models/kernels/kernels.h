// Kernels: the KernelTable that this process uses.
//
// The loops of models/kernels/kernels_variant.cc are compiled for several instruction sets, and one is chosen at run
// time. So one program runs everywhere, at the speed of the processor. All variants give equal bits
// (models/kernels/kernel_table.h says why), so the choice affects speed only: peers with different processors stay
// exact replicas, and a debug build gives the results of a release build.
//
// Measured on one AVX-512 core, batch 16, MLP 784-128-128-10: avx512 about 170 GF/s, avx2 about 115, portable
// about 1.4 (it calls fmaf, one value at a time: for old processors and as the reference of the tests).
//
// Thread: any. A Model reads the choice at every call; choose before the first step.
#pragma once

#include <vector>

#include "models/kernels/kernel_table.h"

namespace rumor::models {

// The table in use (runtime/base/kernel_choice.h).
const KernelTable& kernels();

// Every variant that was built and that this processor runs, slowest first: portable is always there.
std::vector<const KernelTable*> kernel_variants();

}  // namespace rumor::models
