// Matrix products of the emulated device: those of models/kernels/kernel_table.h in place of cuBLASLt.
//
// Thread: plain functions.
#pragma once

#include "gpu/device/table.h"

namespace rumor::gpu {

// y = a b, or y += a b, as `args` has sizes and turns, in float32 whatever its precision; no epilogue.
void emulated_product(const MatmulArgs& args, const float* a, const float* b, float* y);

// To ten bits of mantissa, to the nearest, ties to even.
float emulated_tf32(float value);

}  // namespace rumor::gpu
