// The CUDA plugin: librumor_cuda.so, opened when it is asked for. Without it, or without what it needs, this program
// runs as ever on the CPU.
//
// Looked for: $RUMOR_CUDA (a file) and nowhere else; or beside the program and the library that this is in (librumor),
// in their ../gpu and ../../gpu as in a build folder, in ../lib, and where the system looks. Once opened it stays open.
//
// Thread: plain function.
#pragma once

#include <memory>
#include <span>

#include "gpu/device/device.h"
#include "gpu/device/group.h"
#include "runtime/base/result.h"

namespace rumor::gpu {

// Errors: Errc::not_found where there is no plugin, with what the system says of each place; Errc::mismatch where it is
// of another release.
Result<const GpuTable*> open_plugin();

// The same for one file.
Result<const GpuTable*> open_plugin(const char* file);

// A GPU of this machine, counted from 0. Errors: those of open_plugin() and Gpu::open().
Result<std::unique_ptr<Gpu>> open_gpu(int ordinal);

// Several, to compute together. Errors: those of open_plugin() and GpuGroup::open().
Result<std::unique_ptr<GpuGroup>> open_gpus(std::span<const int> ordinals);

}  // namespace rumor::gpu
