// A GpuTable whose device is this processor: the kernels of gpu/cuda, run by tests/gpu/emulation.h.
//
// Thread: one caller at a time, all devices together.
#pragma once

#include <cstdint>

#include "gpu/table.h"

namespace rumor::gpu {

const GpuTable& emulated_table();

// In which order blocks and threads run from now on; 0: ascending.
void set_emulated_order(std::uint64_t seed);
// allocate() gives nothing beyond so many bytes a device; 0: whatever there is.
void set_emulated_memory(std::size_t bytes);

}  // namespace rumor::gpu
