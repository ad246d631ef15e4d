// The CUDA plugin: librumor_cuda.so, opened on demand. If it or something it needs is missing, the program runs on the
// CPU.
//
// Search path: $RUMOR_CUDA (a file) only, if it is set. Otherwise beside the program and beside the library that
// contains this code (librumor), in their ../gpu and ../../gpu as in a build folder, in ../lib, and where the system
// looks. An opened plugin stays open.
//
// Thread: plain function.
#pragma once

#include <memory>
#include <span>

#include "gpu/device/device.h"
#include "gpu/device/group.h"
#include "runtime/base/result.h"

namespace rumor::gpu {

// Errors: Errc::not_found if there is no plugin, with the system's message for each place; Errc::mismatch if it belongs
// to another release.
Result<const GpuTable*> open_plugin();

// The same for one file.
Result<const GpuTable*> open_plugin(const char* file);

// A GPU of this machine, counted from 0. Errors: those of open_plugin() and Gpu::open().
Result<std::unique_ptr<Gpu>> open_gpu(int ordinal);

// Opens several GPUs that compute together. Errors: those of open_plugin() and GpuGroup::open().
Result<std::unique_ptr<GpuGroup>> open_gpus(std::span<const int> ordinals);

}  // namespace rumor::gpu
