// DeviceModel: models::Model on a GPU: the same tensors, loss and gradient, with parameters, activations and gradient
// in its memory. What models::Model says of its functions holds, but that parameters are device memory and that a
// device may fail.
//
// The rows of a batch come from the host and the loss goes back, nothing else. Bits: the same in each run on one GPU;
// not those of the CPU, whose products add up in another order (gpu/README.md).
//
// Thread: one caller at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/device.h"
#include "models/model.h"

namespace rumor::gpu {

class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  virtual const ParamLayout& layout() const = 0;
  // The mean loss over the batch; `gradient` is overwritten. Requires: layout().params() floats in both arrays.
  // Errors: Errc::limit, too little memory, what to reduce; Errc::io, the device failed, or there are no matrix
  // products; Errc::usage, soft targets, which only the CPU has.
  virtual Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                          const DeviceArray<float>& gradient) = 0;
  // In pieces of some rows. Errors: Errc::limit and Errc::io as above.
  virtual Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) = 0;
  // On the device, but for what products take.
  virtual std::size_t memory_bytes() const = 0;
};

// What loss_and_gradient() says of soft targets.
Error no_soft_targets();

// Of config.family. Refers to `gpu`. Errors: those of models::make_model(); Errc::usage for what no GPU computes.
Result<std::unique_ptr<DeviceModel>> make_device_model(const Gpu& gpu, const models::ModelConfig& config,
                                                       Precision precision);

}  // namespace rumor::gpu
