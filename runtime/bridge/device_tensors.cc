#include "runtime/bridge/device_tensors.h"

#include "gpu/device/plugin.h"

namespace rumor::bridge {

Result<void*> DeviceTensors::add(int ordinal, void* data, std::size_t bytes) {
  auto gpu = gpus_.find(ordinal);
  if (gpu == gpus_.end()) {
    auto opened = gpu::open_gpu(ordinal);
    if (!opened) return opened.error();
    gpu = gpus_.emplace(ordinal, std::move(opened).value()).first;
  }
  const std::size_t floats = (bytes + sizeof(float) - 1) / sizeof(float);
  tensors_.push_back(std::make_unique<Tensor>(Tensor{gpu->second.get(), data, bytes, LargeVector<float>(floats)}));
  return static_cast<void*>(tensors_.back()->copy.data());
}

Result<void> DeviceTensors::fetch() const {
  for (const auto& tensor : tensors_) {
    if (auto copied = tensor->gpu->copy_out(tensor->copy.data(), tensor->data, tensor->bytes); !copied) return copied;
  }
  return {};
}

Result<void> DeviceTensors::store() const {
  for (const auto& tensor : tensors_) {
    const gpu::Gpu& gpu = *tensor->gpu;
    gpu.table().copy_in(gpu.device(), tensor->data, tensor->copy.data(), tensor->bytes);
  }
  for (const auto& [ordinal, gpu] : gpus_) {
    if (auto written = gpu->wait(); !written) return written;
  }
  return {};
}

}  // namespace rumor::bridge
