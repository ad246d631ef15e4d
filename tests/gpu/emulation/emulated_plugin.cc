// The emulation behind the symbol of a plugin: RUMOR_CUDA=libemulated_gpu.so rumor peer RUN --device cuda.
#include "tests/gpu/emulation/emulated_table.h"

extern "C" __attribute__((visibility("default"))) const rumor::gpu::GpuTable* rumor_gpu_table() {
  return &rumor::gpu::emulated_table();
}
