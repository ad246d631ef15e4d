// A GpuTable whose devices are this processor: the kernels of gpu/cuda, run by tests/gpu/emulation/emulation.h. There
// are emulated_devices of them, each with memory of its own: copies that touch that of another are a failure, and
// a kernel that does is an error of the address sanitizer's. Each may be opened several times, for as many streams.
//
// Thread: as gpu/device/table.h says; they take turns, so nothing happens at once. What is set below: no caller
// meanwhile.
#pragma once

#include <cstdint>

#include "gpu/device/table.h"

namespace rumor::gpu {

inline constexpr int emulated_devices = 4;
const GpuTable& emulated_table();

// In which order blocks and threads run from now on; 0: ascending.
void set_emulated_order(std::uint64_t seed);
// Bytes that were copied to devices from the host, and back, so far.
std::uint64_t emulated_bytes_in();
std::uint64_t emulated_bytes_out();
// allocate() gives nothing beyond so many bytes a device; 0: whatever there is.
void set_emulated_memory(std::size_t bytes);
// Whether a device can write work down; it can from the beginning.
void set_emulated_recording(bool there);
// Whether devices can be joined, as with and without NCCL; they can from the beginning.
void set_emulated_groups(bool there);

}  // namespace rumor::gpu
