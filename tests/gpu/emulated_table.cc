#include "tests/gpu/emulated_table.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "tests/gpu/emulated_product.h"
#include "tests/gpu/emulation.h"

namespace rumor::gpu {

namespace {

std::uint64_t order_seed = 0;
std::size_t memory_max = 0;

}  // namespace

struct Device {
  std::map<void*, std::size_t> memory;
  std::size_t used = 0;
  std::string failure;  // the first
};

// A failure is reported by the next wait, as on a GPU.
template <class... Params, class... Args>
void launch(Device& device, void (*kernel)(Params...), std::uint64_t blocks, unsigned threads, Args... args) {
  if (!device.failure.empty()) return;
  if (order_seed != 0) ++order_seed;
  try {
    emulation::run_grid(blocks, threads, {order_seed}, [&] { kernel(static_cast<Params>(args)...); });
  } catch (const std::exception& error) {
    device.failure = error.what();
  }
}

inline void fill_bytes(Device&, void* to, int byte, std::size_t bytes) {
  std::memset(to, byte, bytes);
}

}  // namespace rumor::gpu

#include "gpu/cuda/slots.cuh"

namespace rumor::gpu {

Status machine::count(int* devices, ErrorText*) {
  *devices = 1;
  return Status::ok;
}

Status machine::open(int ordinal, Device** device, ErrorText* error) {
  *device = nullptr;
  if (ordinal == 0) {
    *device = new Device;
    return Status::ok;
  }
  std::snprintf(error->text, sizeof error->text, "there is no GPU of this number");
  return Status::no_device;
}

void machine::close(Device* device) {
  for (const auto& [memory, bytes] : device->memory) std::free(memory);
  delete device;
}

Status machine::describe(Device* device, DeviceInfo* info, ErrorText*) {
  *info = {};
  std::snprintf(info->name, sizeof info->name, "emulation");
  info->memory_bytes = memory_max;
  info->free_bytes = memory_max == 0 ? 0 : memory_max - device->used;
  return Status::ok;
}

// Aligned as the memory of a GPU is, and full of what nobody wrote.
void* machine::allocate(Device* device, std::size_t bytes) {
  if (memory_max != 0 && device->used + bytes > memory_max) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes == 0 ? 1 : bytes) != 0) return nullptr;
  std::memset(memory, 0xcd, bytes);
  device->memory[memory] = bytes;
  device->used += bytes;
  return memory;
}

void machine::release(Device* device, void* memory) {
  const auto at = device->memory.find(memory);
  if (at == device->memory.end()) {
    if (memory != nullptr) device->failure = "memory that is not of this device was released";
    return;
  }
  device->used -= at->second;
  device->memory.erase(at);
  std::free(memory);
}

void machine::copy_in(Device*, void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void machine::copy_within(Device* device, void* to, const void* from, std::size_t bytes) {
  copy_in(device, to, from, bytes);
}

Status machine::wait(Device* device, ErrorText* error) {
  if (device->failure.empty()) return Status::ok;
  std::snprintf(error->text, sizeof error->text, "%s", device->failure.c_str());
  return Status::failed;
}

Status machine::copy_out(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return wait(device, error);
}


// With the CPU's kernels; bfloat16 is made by the device's.
Status machine::product(Device* device, const MatmulArgs* args, bool*, ErrorText*) {
  MatmulArgs taken = *args;
  std::vector<float> a(std::size_t{args->rows} * args->depth), b(std::size_t{args->depth} * args->columns);
  const auto round = [&](const float* from, std::vector<float>& to) {
    std::vector<std::uint16_t> halves(to.size());
    if (args->precision == Precision::bf16)
      launch(*device, round_to_bf16, slots::stride_blocks(to.size(), rounding_threads), rounding_threads,
             std::uint64_t{to.size()}, from, halves.data());
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = args->precision == Precision::bf16 ? __uint_as_float(std::uint32_t{halves[i]} << 16)
                                                 : emulated_tf32(from[i]);
  };
  if (args->precision != Precision::fp32) {
    round(args->a, a);
    round(args->b, b);
    taken.a = a.data();
    taken.b = b.data();
  }
  if (device->failure.empty()) emulated_product(taken, slots::bare_product(*args));
  return Status::ok;
}

const GpuTable& emulated_table() {
  static const GpuTable table = make_table("emulated");
  return table;
}

void set_emulated_order(std::uint64_t seed) {
  order_seed = seed;
}
void set_emulated_memory(std::size_t bytes) {
  memory_max = bytes;
}

}  // namespace rumor::gpu
