// Matrix products of the emulated device: those of models/kernel_table.h in place of cuBLASLt.
//
// Thread: plain functions.
#pragma once

#include "gpu/table.h"

namespace rumor::gpu {

// y = a b, or y += a b, in float32 whatever args.precision says; no epilogue.
void emulated_product(const MatmulArgs& args, float* y);

// To ten bits of mantissa, to the nearest, ties to even.
float emulated_tf32(float value);

}  // namespace rumor::gpu
