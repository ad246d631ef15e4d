// Gpu: one opened device of a table, a stream on a GPU. DeviceArray: device memory that frees itself.
//
// Thread: one caller at a time, as the table says. A Gpu outlives its arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "gpu/device/table.h"
#include "runtime/base/result.h"

namespace rumor::gpu {

class Gpu {
 public:
  // Errors: Errc::io, naming what is missing: a driver, a GPU, code for it.
  static Result<std::unique_ptr<Gpu>> open(const GpuTable& table, int ordinal);
  // Opens another stream on the same GPU, for a caller of its own. The GPU begins that stream's work before the work of
  // this stream. Both streams may use each other's memory, once the work begun on it by the other has been waited for.
  // Errors: as open().
  Result<std::unique_ptr<Gpu>> open_urgent() const { return open(table_, ordinal_, true); }
  ~Gpu() { table_.close(device_); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuTable& table() const { return table_; }
  Device* device() const { return device_; }

  // Waits for all work before it. Errors: Errc::io, for any failure on the device since it was opened.
  Result<void> copy_out(void* to, const void* from, std::size_t bytes) const;
  Result<void> wait() const;
  Result<DeviceInfo> describe() const;

  // Computes one matrix product, as gpu/device/model_table.h says. Errors: Errc::limit for too little memory; Errc::io
  // for all other failures.
  Result<void> matmul(const MatmulArgs& args) const;

  // Makes the error for a failed allocation of `bytes`: its purpose, how much memory is left and a remedy. Errc::limit.
  Error too_little_memory(const char* what, std::size_t bytes) const;

 private:
  static Result<std::unique_ptr<Gpu>> open(const GpuTable& table, int ordinal, bool urgent);
  Gpu(const GpuTable& table, int ordinal, Device* device) : table_(table), ordinal_(ordinal), device_(device) {}
  const GpuTable& table_;
  int ordinal_;
  Device* device_;
};

// An array of plain data on a device. Values are unspecified until written.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceArray() {
    if (data_ != nullptr) gpu_->table().release(gpu_->device(), data_);
  }

  // Errors: Errc::limit, naming `what` the memory was for.
  static Result<DeviceArray> create(const Gpu& gpu, std::size_t size, const char* what) {
    DeviceArray array;
    array.data_ = static_cast<T*>(gpu.table().allocate(gpu.device(), size * sizeof(T)));
    if (array.data_ == nullptr) return gpu.too_little_memory(what, size * sizeof(T));
    array.gpu_ = &gpu;
    array.size_ = size;
    return array;
  }

  // Makes room for `size` values. Growing loses the contents; the array never shrinks. size() may be larger afterwards.
  Result<void> make_room(const Gpu& gpu, std::size_t size, const char* what) {
    if (size <= size_) return {};
    Result<DeviceArray> larger = create(gpu, size, what);
    if (!larger) return larger.error();
    swap(*larger);
    return {};
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  // Writes the first `count` values. Requires: count <= size().
  void write(const T* from, std::size_t count) const {
    if (count > 0) gpu_->table().copy_in(gpu_->device(), data_, from, count * sizeof(T));
  }
  Result<void> read(T* to, std::size_t count) const {
    if (count == 0) return {};
    return gpu_->copy_out(to, data_, count * sizeof(T));
  }

 private:
  void swap(DeviceArray& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  const Gpu* gpu_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Bytes of device memory; runtime/base/memory_bytes.h is its counterpart for host memory.
template <class... Array>
std::size_t device_bytes(const Array&... arrays) {
  return (std::size_t{0} + ... + arrays.bytes());
}

}  // namespace rumor::gpu
