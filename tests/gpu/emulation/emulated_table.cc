#include "tests/gpu/emulation/emulated_table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/sanitized.h"
#include "tests/gpu/emulation/emulated_matrix_units.h"
#include "tests/gpu/emulation/emulated_product.h"
#include "tests/gpu/emulation/emulation.h"

#if defined(RUMOR_SANITIZED_ADDRESS)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(memory)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(memory)
#endif

namespace rumor::gpu {

namespace {

std::uint64_t order_seed = 0;
std::size_t memory_max = 0;
bool groups_there = true, recording_there = true;
std::uint64_t bytes_in = 0, bytes_out = 0;

std::vector<Device*> opened;
// This processor is one at a time.
std::recursive_mutex machine_lock;
using Turn = std::lock_guard<std::recursive_mutex>;

// Those with the memory of this GPU.
template <class Do>
void for_streams_of(int ordinal, const Do& one);

}  // namespace

struct Device {
  int ordinal = 0;
  std::map<const void*, std::size_t> memory;  // that it gave
  std::size_t used = 0;
  std::string failure;  // the first
  bool recording = false, broken = false;      // broken: something was called that cannot be written down
  std::vector<std::function<void()>> written;  // by the recording that is under way
  std::size_t bf16_room = 0, moves = 0;        // room that products in bfloat16 have, and how often it moved

  // While a recording is under way, records `work` instead of doing it. True: recorded.
  template <class Work>
  bool wrote(const Work& work) {
    if (recording) written.push_back(work);
    return recording;
  }
  // Called by work that cannot be recorded; breaks a recording that is under way.
  void happens_at_once() { broken = broken || recording; }
  void fail(const char* what) {
    if (failure.empty()) failure = what;
  }
  bool gave(const void* begin, std::size_t bytes) const {
    const auto after = memory.upper_bound(begin);
    if (after == memory.begin()) return false;
    const auto& [first, size] = *std::prev(after);
    return static_cast<const char*>(begin) + bytes <= static_cast<const char*>(first) + size;
  }
  // Whether all of it is on its GPU. Notes a failure where it is not.
  bool owns(const void* begin, std::size_t bytes) {
    bool there = false;
    for_streams_of(ordinal, [&](const Device& device) { there = there || device.gave(begin, bytes); });
    if (!there) fail("memory that is not of this device was copied");
    return there;
  }
};

struct Group {
  std::vector<Device*> devices;
};

struct Recording {
  std::vector<std::function<void()>> work;
  std::size_t moves;
};

namespace {

template <class Do>
void for_streams_of(int ordinal, const Do& one) {
  for (Device* device : opened)
    if (device->ordinal == ordinal) one(*device);
}

int entered = -1;  // the GPU whose memory can be touched

void enter(const Device& device) {
  if (entered == device.ordinal) return;
  for_streams_of(entered, [](const Device& left) {
    for (const auto& [memory, bytes] : left.memory) ASAN_POISON_MEMORY_REGION(memory, bytes);
  });
  entered = device.ordinal;
  for_streams_of(entered, [](const Device& there) {
    for (const auto& [memory, bytes] : there.memory) ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
  });
}

std::size_t used_of(const Device& device) {
  std::size_t used = 0;
  for_streams_of(device.ordinal, [&](const Device& one) { used += one.used; });
  return used;
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
  if (device.wrote([=, &device] { launch(device, kernel, blocks, threads, args...); })) return;
  const Turn turn(machine_lock);
  enter(device);
  if (order_seed != 0) ++order_seed;
  try {
    emulation::run_grid(blocks, threads, {order_seed}, [&] { kernel(static_cast<Params>(args)...); });
  } catch (const std::exception& error) {
    device.failure = error.what();
  }
}

inline void fill_bytes(Device& device, void* to, int byte, std::size_t bytes) {
  if (device.wrote([=, &device] { fill_bytes(device, to, byte, bytes); })) return;
  const Turn turn(machine_lock);
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

Status machine::open(int ordinal, bool, Device** device, ErrorText* error) {
  *device = nullptr;
  if (ordinal < emulated_devices) {
    const Turn turn(machine_lock);
    opened.push_back(*device = new Device);
    (*device)->ordinal = ordinal;
    return Status::ok;
  }
  std::snprintf(error->text, sizeof error->text, "there is no GPU of this number");
  return Status::no_device;
}

void machine::close(Device* device) {
  const Turn turn(machine_lock);
  for (const auto& [memory, bytes] : device->memory) give_back(memory, bytes);
  std::erase(opened, device);
  delete device;
}

Status machine::describe(Device* device, DeviceInfo* info, ErrorText*) {
  *info = {};
  std::snprintf(info->name, sizeof info->name, "emulation");
  const Turn turn(machine_lock);
  info->memory_bytes = memory_max;
  info->free_bytes = memory_max == 0 ? 0 : memory_max - std::min(memory_max, used_of(*device));
  return Status::ok;
}

// Aligned as the memory of a GPU is, and full of what nobody wrote.
void* machine::allocate(Device* device, std::size_t bytes) {
  device->happens_at_once();
  const Turn turn(machine_lock);
  if (memory_max != 0 && used_of(*device) + bytes > memory_max) return nullptr;
  enter(*device);
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes == 0 ? 1 : bytes) != 0) return nullptr;
  std::memset(memory, 0xcd, bytes);
  device->memory[memory] = bytes;
  device->used += bytes;
  return memory;
}

void machine::release(Device* device, void* memory) {
  device->happens_at_once();
  const Turn turn(machine_lock);
  const auto at = device->memory.find(memory);
  if (at == device->memory.end()) {
    if (memory != nullptr) device->fail("memory that is not of this device was released");
    return;
  }
  device->used -= at->second;
  give_back(memory, at->second);
  device->memory.erase(at);
}

static void write(Device* device, void* to, const void* from, std::size_t bytes) {
  device->happens_at_once();
  const Turn turn(machine_lock);
  enter(*device);
  if (bytes != 0 && device->owns(to, bytes)) std::memcpy(to, from, bytes);
}

void machine::copy_in(Device* device, void* to, const void* from, std::size_t bytes) {
  const Turn turn(machine_lock);
  bytes_in += bytes;
  write(device, to, from, bytes);
}

void machine::copy_within(Device* device, void* to, const void* from, std::size_t bytes) {
  if (device->wrote([=] { copy_within(device, to, from, bytes); })) return;
  const Turn turn(machine_lock);
  if (bytes != 0 && device->owns(from, bytes)) write(device, to, from, bytes);
}

Status machine::wait(Device* device, ErrorText* error) {
  device->happens_at_once();
  if (device->failure.empty()) return Status::ok;
  std::snprintf(error->text, sizeof error->text, "%s", device->failure.c_str());
  return Status::failed;
}

Status machine::copy_out(Device* device, void* to, const void* from, std::size_t bytes, ErrorText* error) {
  const Turn turn(machine_lock);
  bytes_out += bytes;
  enter(*device);
  if (bytes != 0 && device->owns(from, bytes)) std::memcpy(to, from, bytes);
  return wait(device, error);
}

Status machine::begin_recording(Device* device, ErrorText* error) {
  device->recording = recording_there;
  device->broken = false;
  device->written.clear();
  if (recording_there) return Status::ok;
  std::snprintf(error->text, sizeof error->text, "nothing can be written down");
  return Status::failed;
}

Status machine::end_recording(Device* device, Recording** recording, ErrorText* error) {
  *recording = nullptr;
  device->recording = false;
  if (!device->broken) {
    *recording = new Recording{std::move(device->written), device->moves};
    return Status::ok;
  }
  std::snprintf(error->text, sizeof error->text, "something could not be written down");
  return Status::failed;
}

bool machine::repeat(Device* device, Recording* recording) {
  if (recording->moves != device->moves) return false;
  for (const auto& work : recording->work) work();
  return true;
}

void machine::forget(Recording* recording) {
  delete recording;
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
  const Turn turn(machine_lock);
  std::vector<float> sum(count);
  for (std::size_t d = 0; d < group->devices.size(); ++d) {
    enter(*group->devices[d]);
    if (!group->devices[d]->owns(values[d], count * sizeof(float))) return Status::ok;
    for (std::uint64_t i = 0; i < count; ++i) sum[i] = d == 0 ? values[0][i] : sum[i] + values[d][i];
  }
  write(group->devices.front(), values[0], sum.data(), count * sizeof(float));
  return Status::ok;
}

Status machine::spread(Group* group, void* const* memory, std::size_t bytes, ErrorText* error) {
  std::vector<std::uint8_t> all(bytes);
  if (const Status read = copy_out(group->devices.front(), all.data(), memory[0], bytes, error);
      read != Status::ok)
    return read;
  for (std::size_t d = 1; d < group->devices.size(); ++d)
    write(group->devices[d], memory[d], all.data(), bytes);
  return Status::ok;
}

// The numbers of a product as they are taken; bfloat16 is made by the device's kernel.
static std::vector<float> taken(Device* device, const ConstNumbers& numbers, std::size_t count, Precision precision) {
  std::vector<Bf16> rounded(count);
  if (numbers.bf16)
    std::copy_n(static_cast<const Bf16*>(numbers.at), count, rounded.data());
  else if (precision == Precision::bf16)
    slots::round(device, count, static_cast<const float*>(numbers.at), rounded.data());
  const auto* const floats = static_cast<const float*>(numbers.at);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = precision == Precision::bf16   ? number_of(rounded[i])
                : precision == Precision::tf32 ? emulated_tf32(floats[i])
                                               : floats[i];
  return values;
}

// With the CPU's kernels.
static void multiply_one(Device* device, const MatmulArgs& args) {
  const std::vector<float> a = taken(device, args.a, layout_of_a(args).extent(), args.precision);
  const std::vector<float> b = taken(device, args.b, layout_of_b(args).extent(), args.precision);
  if (!device->failure.empty()) return;
  const Numbers y = slots::bare_product(args);
  if (!y.bf16) return emulated_product(args, a.data(), b.data(), static_cast<float*>(y.at));
  std::vector<float> sums(layout_of_y(args).extent());
  auto* const rounded = static_cast<Bf16*>(y.at);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = number_of(rounded[i]);
  emulated_product(args, a.data(), b.data(), sums.data());
  slots::round(device, sums.size(), sums.data(), rounded);
}

static void multiply(Device* device, const MatmulArgs& args) {
  const Turn turn(machine_lock);
  enter(*device);
  MatmulArgs one = args;
  for (std::uint32_t m = 0; m < args.batch; ++m) {
    one.a = args.a.from(m * args.a_step);
    one.b = args.b.from(m * args.b_step);
    one.y = args.y.from(m * args.y_step);
    multiply_one(device, one);
  }
}

Status machine::product(Device* device, const MatmulArgs* args, bool*, ErrorText*) {
  const bool rounds = args->precision == Precision::bf16 && !(args->a.bf16 && args->b.bf16);
  const std::size_t numbers = std::max(layout_of_a(*args).extent(args->batch, args->a_step),
                                       layout_of_b(*args).extent(args->batch, args->b_step));
  if (rounds && numbers > device->bf16_room) {
    device->happens_at_once();
    device->bf16_room = numbers;
    ++device->moves;
  }
  const auto work = [device, rounds, copied = *args, moves = device->moves] {
    if (rounds && device->moves != moves) device->fail("memory of a product has moved");
    multiply(device, copied);
  };
  if (!device->wrote(work)) work();
  return Status::ok;
}

const GpuTable& emulated_table() {
  static const GpuTable table = make_table("emulated");
  return table;
}

void set_emulated_order(std::uint64_t seed) {
  order_seed = seed;
}
std::uint64_t emulated_bytes_in() {
  return bytes_in;
}
std::uint64_t emulated_bytes_out() {
  return bytes_out;
}
void set_emulated_memory(std::size_t bytes) {
  memory_max = bytes;
}
void set_emulated_recording(bool there) {
  recording_there = there;
}
void set_emulated_groups(bool there) {
  groups_there = there;
}

}  // namespace rumor::gpu
