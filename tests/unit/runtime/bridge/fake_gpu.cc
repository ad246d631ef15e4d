// A CUDA plugin for tests of who uses one only to copy. Its memory is this process's under addresses that are none: a
// bit higher, so that whoever touches it without a copy crashes. A negative value there makes the copy out of it fail.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "gpu/device/table.h"

namespace rumor::gpu {

struct Device {
  bool failed = false;
};

namespace {

constexpr std::uintptr_t far_away = std::uintptr_t{1} << 62;

Device device;

void* near_by(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) ^ far_away);
}

Status count(int* devices, ErrorText*) {
  *devices = 1;
  return Status::ok;
}

Status open(int, bool, Device** opened, ErrorText*) {
  *opened = &device;
  return Status::ok;
}

Status wait(Device* on, ErrorText* error) {
  if (!on->failed) return Status::ok;
  std::snprintf(error->text, sizeof error->text, "as it was told to");
  return Status::failed;
}

Status copy_out(Device* on, void* to, const void* from, std::size_t bytes, ErrorText* error) {
  std::memcpy(to, near_by(from), bytes);
  float first;
  std::memcpy(&first, to, sizeof first < bytes ? sizeof first : bytes);
  on->failed = first < 0;
  return wait(on, error);
}

void copy_in(Device*, void* to, const void* from, std::size_t bytes) {
  std::memcpy(near_by(to), from, bytes);
}

GpuTable table() {
  GpuTable made{};
  made.version = table_version;
  made.bytes = sizeof made;
  made.count = count;
  made.open = open;
  made.close = [](Device*) {};
  made.wait = wait;
  made.copy_out = copy_out;
  made.copy_in = copy_in;
  return made;
}

}  // namespace
}  // namespace rumor::gpu

extern "C" __attribute__((visibility("default"))) const rumor::gpu::GpuTable* rumor_gpu_table() {
  static const rumor::gpu::GpuTable made = rumor::gpu::table();
  return &made;
}
