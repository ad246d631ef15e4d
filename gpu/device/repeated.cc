#include "gpu/device/repeated.h"

namespace rumor::gpu {

void Repeated::forget() {
  if (recording_ != nullptr) gpu_->table().forget(std::exchange(recording_, nullptr));
}

bool Repeated::repeat() {
  if (recording_ == nullptr || !gpu_->table().repeat(gpu_->device(), recording_)) return false;
  ++repeats_;
  return true;
}

// Returns false if nothing was begun.
bool Repeated::record(const std::function<Result<void>()>& begin) {
  const GpuTable& table = gpu_->table();
  ErrorText error{};
  if (table.begin_recording(gpu_->device(), &error) != Status::ok) return false;
  const Result<void> begun = begin();
  const Status ended = table.end_recording(gpu_->device(), &recording_, &error);
  return ended == Status::ok && begun.ok();
}

// The first run is not recorded: it finds the best algorithms for products and allocates their memory.
Result<void> Repeated::run(const Key& key, const std::function<Result<void>()>& begin) {
  const bool known = key == key_;
  if (known && repeat()) return {};
  forget();
  key_ = key;
  if (known && !impossible_) {
    if (record(begin) && repeat()) return {};
    forget();
    impossible_ = true;
  }
  return begin();
}

}  // namespace rumor::gpu
