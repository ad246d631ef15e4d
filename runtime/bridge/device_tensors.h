// DeviceTensors: a program's tensors in GPU memory, and the host copies that a trainer works on.
//
// Thread: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gpu/device/device.h"
#include "runtime/base/large_vector.h"

namespace rumor::bridge {

class DeviceTensors {
 public:
  // `bytes` at `data` on GPU `ordinal`. Gives their copy, which holds nothing before fetch() and stays where it is.
  // Errors: Errc::not_found without the CUDA plugin, Errc::io for a GPU that is not there.
  Result<void*> add(int ordinal, void* data, std::size_t bytes);

  // Copies everything from the GPUs, or to them, and waits. Errors: Errc::io; the content is then unspecified.
  Result<void> fetch() const;
  Result<void> store() const;

 private:
  struct Tensor {
    const gpu::Gpu* gpu;
    void* data;
    std::size_t bytes;
    LargeVector<float> copy;
  };
  std::map<int, std::unique_ptr<gpu::Gpu>> gpus_;  // by ordinal; those that tensors are on
  std::vector<std::unique_ptr<Tensor>> tensors_;
};

}  // namespace rumor::bridge
