// Repeated: work on a device that is begun again and again, each time in the same way. It is recorded when it comes for
// the second time, and then begun at once instead of kernel by kernel (a CUDA graph, gpu/device/table.h), which
// shortens a step whose kernels take less long than the host takes to begin them.
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
  // Whatever decides what is begun: sizes, and where all that is touched lies.
  using Key = std::array<std::uint64_t, 4>;

  // Refers to `gpu`.
  explicit Repeated(const Gpu& gpu) : gpu_(&gpu) {}
  Repeated(Repeated&& other) noexcept { swap(other); }
  Repeated& operator=(Repeated&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Repeated() { forget(); }

  // Begins the work. begin() does so by slots that begin work and nothing else (gpu/device/table.h,
  // begin_recording()), the same ones for the same key. Errors: begin()'s.
  Result<void> run(const Key& key, const std::function<Result<void>()>& begin);
  // Without being begun kernel by kernel, so far.
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
