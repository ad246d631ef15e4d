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

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUMOR_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RUMOR_ADDRESS_SANITIZER 1
#endif
#if defined(RUMOR_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(memory)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(memory)
#endif

namespace rumor::gpu {

namespace {

std::uint64_t order_seed = 0;
std::size_t memory_max = 0;
bool groups_there = true;

}  // namespace

struct Device {
  std::map<const void*, std::size_t> memory;
  std::size_t used = 0;
  std::string failure;  // the first

  void fail(const char* what) {
    if (failure.empty()) failure = what;
  }
  // Whether all of it is. Notes a failure where it is not.
  bool owns(const void* begin, std::size_t bytes) {
    const auto after = memory.upper_bound(begin);
    if (after != memory.begin()) {
      const auto& [first, size] = *std::prev(after);
      if (static_cast<const char*>(begin) + bytes <= static_cast<const char*>(first) + size) return true;
    }
    fail("memory that is not of this device was copied");
    return false;
  }
};

struct Group {
  std::vector<Device*> devices;
};

namespace {

Device* entered = nullptr;  // whose memory can be touched

void enter(Device& device) {
  if (entered == &device) return;
  if (entered != nullptr)
    for (const auto& [memory, bytes] : entered->memory) ASAN_POISON_MEMORY_REGION(memory, bytes);
  for (const auto& [memory, bytes] : device.memory) ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  entered = &device;
}

void give_back(const void* memory, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  static_cast<void>(bytes);
  std::free(const_cast<void*>(memory));
}

}  // namespace

// A failure is reported by the next wait, as on a GPU.
template <class... Params, class... Args>
void launch(Device& device, void (*kernel)(Params...), std::uint64_t blocks, unsigned threads, Args... args) {
  if (!device.failure.empty()) return;
  enter(device);
  if (order_seed != 0) ++order_seed;
  try {
    emulation::run_grid(blocks, threads, {order_seed}, [&] { kernel(static_cast<Params>(args)...); });
  } catch (const std::exception& error) {
    device.failure = error.what();
  }
}

inline void fill_bytes(Device& device, void* to, int byte, std::size_t bytes) {
  enter(device);
  if (device.owns(to, bytes)) std::memset(to, byte, bytes);
}

}  // namespace rumor::gpu

#include "gpu/cuda/slots.cuh"

namespace rumor::gpu {

Status machine::count(int* devices, ErrorText*) {
  *devices = emulated_devices;
  return Status::ok;
}

Status machine::open(int ordinal, Device** device, ErrorText* error) {
  *device = nullptr;
  if (ordinal < emulated_devices) {
    *device = new Device;
    return Status::ok;
  }
  std::snprintf(error->text, sizeof error->text, "there is no GPU of this number");
  return Status::no_device;
}

void machine::close(Device* device) {
  for (const auto& [memory, bytes] : device->memory) give_back(memory, bytes);
  if (entered == device) entered = nullptr;
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
  enter(*device);
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
    if (memory != nullptr) device->fail("memory that is not of this device was released");
    return;
  }
  device->used -= at->second;
  give_back(memory, at->second);
  device->memory.erase(at);
}

void machine::copy_in(Device* device, void* to, const void* from, std::size_t bytes) {
  enter(*device);
  if (bytes != 0 && device->owns(to, bytes)) std::memcpy(to, from, bytes);
}

void machine::copy_within(Device* device, void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && device->owns(from, bytes)) copy_in(device, to, from, bytes);
}

Status machine::wait(Device* device, ErrorText* error) {
  if (device->failure.empty()) return Status::ok;
  std::snprintf(error->text, sizeof error->text, "%s", device->failure.c_str());
  return Status::failed;
}

Status machine::copy_out(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error) {
  enter(*device);
  if (bytes != 0 && device->owns(from, bytes)) std::memcpy(to, from, bytes);
  return wait(device, error);
}

Status machine::join(Device* const* devices, int count, Group** group, ErrorText* error) {
  *group = nullptr;
  if (!groups_there) {
    std::snprintf(error->text, sizeof error->text, "that needs a library, which is not here; install it");
    return Status::failed;
  }
  if (count > 0) *group = new Group{{devices, devices + count}};
  return Status::ok;
}

void machine::part(Group* group) {
  delete group;
}

Status machine::reduce(Group* group, float* const* values, std::uint64_t count, ErrorText*) {
  std::vector<float> sum(count);
  for (std::size_t d = 0; d < group->devices.size(); ++d) {
    enter(*group->devices[d]);
    if (!group->devices[d]->owns(values[d], count * sizeof(float))) return Status::ok;
    for (std::uint64_t i = 0; i < count; ++i) sum[i] = d == 0 ? values[0][i] : sum[i] + values[d][i];
  }
  copy_in(group->devices.front(), values[0], sum.data(), count * sizeof(float));
  return Status::ok;
}

Status machine::spread(Group* group, void* const* memory, std::size_t bytes, ErrorText* error) {
  std::vector<std::uint8_t> all(bytes);
  if (const Status read = copy_out(group->devices.front(), all.data(), memory[0], bytes, error);
      read != Status::ok)
    return read;
  for (std::size_t d = 1; d < group->devices.size(); ++d)
    copy_in(group->devices[d], memory[d], all.data(), bytes);
  return Status::ok;
}

// With the CPU's kernels; bfloat16 is made by the device's.
Status machine::product(Device* device, const MatmulArgs* args, bool*, ErrorText*) {
  enter(*device);
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
void set_emulated_groups(bool there) {
  groups_there = there;
}

}  // namespace rumor::gpu
