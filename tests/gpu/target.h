// The target of this folder's tests: the kernels emulated on this processor, or a GPU through the plugin.
//
// RUMOR_GPU_TEST=device asks for the GPU (main.cc); without one the program says so and exits with 77, skipped.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/device/device.h"
#include "gpu/device/group.h"
#include "tests/gpu/emulation/emulated_table.h"

namespace rumor::gpu {

const GpuTable& target_table();
bool on_device();

struct Target;
// False, with a message, where matrix products cannot be tried: on a GPU of a machine without cuBLASLt.
bool has_products(const Target& target);

// An open device of the target, made anew for each test case; in the emulation blocks and threads run in the order
// that the seed draws, 0: ascending.
struct Target {
  explicit Target(std::uint64_t order = 0);
  std::unique_ptr<Gpu> gpu;
  const GpuTable& table() const { return gpu->table(); }
  Device* device() const { return gpu->device(); }
};

// The first GPUs of the target as a group; in the emulation in that order. Null, with a message, where there are fewer
// or they cannot be joined.
std::unique_ptr<GpuGroup> target_group(std::size_t size, std::uint64_t order = 0);

// Device memory with guards around it, `skip` values off the alignment that allocations have.
template <class T>
class Guarded {
 public:
  static constexpr std::size_t margin = 256 / sizeof(T) * 2;

  Guarded(const Target& target, std::size_t size, std::size_t skip = 0)
      : target_(target), size_(size), begin_(margin + skip) {
    std::vector<std::uint8_t> bytes((begin_ + size + margin) * sizeof(T), pattern);
    memory_ = DeviceArray<std::uint8_t>::create(*target.gpu, bytes.size(), "a test").value();
    memory_.write(bytes.data(), bytes.size());
  }
  Guarded(const Target& target, const std::vector<T>& values, std::size_t skip = 0)
      : Guarded(target, values.size(), skip) {
    write(values);
  }

  T* data() const { return reinterpret_cast<T*>(memory_.data()) + begin_; }
  std::size_t size() const { return size_; }
  void write(const std::vector<T>& values) const {
    if (!values.empty()) target_.table().copy_in(target_.device(), data(), values.data(), values.size() * sizeof(T));
  }
  // All values. Throws when the device failed, or when something wrote outside of them.
  std::vector<T> read() const {
    std::vector<std::uint8_t> bytes(memory_.size());
    const Result<void> read = memory_.read(bytes.data(), bytes.size());
    if (!read) throw std::runtime_error(read.error().text);
    for (std::size_t b = 0; b < bytes.size(); ++b)
      if ((b < begin_ * sizeof(T) || b >= (begin_ + size_) * sizeof(T)) && bytes[b] != pattern)
        throw std::runtime_error("a kernel wrote outside of an array");
    std::vector<T> values(size_);
    if (size_ > 0) std::memcpy(values.data(), bytes.data() + begin_ * sizeof(T), size_ * sizeof(T));
    return values;
  }

 private:
  static constexpr std::uint8_t pattern = 0xa5;
  const Target& target_;
  std::size_t size_, begin_;
  DeviceArray<std::uint8_t> memory_;
};

}  // namespace rumor::gpu
