// What a layer of GPT-2 124M and its head cost on a GPU, slot by slot (8 rows of 1024 tokens).
#pragma once

#include <string>

#include "gpu/device.h"

namespace rumor::gpu {

// One JSON object: seconds of each slot, and of products the operations a second; null in place of products where
// cuBLASLt is not there. Emulated: of small shapes, everything is run and nothing measured.
std::string model_benchmarks(const Gpu& gpu, bool emulated);

}  // namespace rumor::gpu
