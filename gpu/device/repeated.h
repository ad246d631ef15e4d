// Repeated: work on a device that is begun many times in the same way. The second run records it. From then on one call
// begins it instead of one call per kernel (a CUDA graph, gpu/device/table.h). This shortens a step whose kernels take
// less time than the host needs to begin them.
//
// Work that cannot be recorded is started kernel by kernel, and recording is not tried again.
//
// Thread: one owner, a caller of the device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "gpu/device/device.h"

namespace rumor::gpu {

class Repeated {
 public:
  // Identifies the work that is begun: sizes, and the addresses of all memory it touches.
  using Key = std::array<std::uint64_t, 4>;

  // Refers to `gpu`.
  explicit Repeated(const Gpu& gpu) : gpu_(&gpu) {}
  Repeated(Repeated&& other) noexcept { swap(other); }
  Repeated& operator=(Repeated&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Repeated() { forget(); }

  // Begins the work. begin() calls only slots that may be recorded (gpu/device/table.h, begin_recording()), and the
  // same slots for the same key. Errors: those of begin().
  Result<void> run(const Key& key, const std::function<Result<void>()>& begin);
  // How often the work was begun from its recording.
  std::uint64_t repeats() const { return repeats_; }

 private:
  bool repeat();
  void forget();
  bool record(const std::function<Result<void>()>& begin);
  void swap(Repeated& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(key_, other.key_);
    std::swap(recording_, other.recording_);
    std::swap(impossible_, other.impossible_);
    std::swap(repeats_, other.repeats_);
  }

  const Gpu* gpu_ = nullptr;
  Key key_{};
  Recording* recording_ = nullptr;  // of key_
  bool impossible_ = false;
  std::uint64_t repeats_ = 0;
};

}  // namespace rumor::gpu
