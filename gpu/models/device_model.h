// DeviceModel: models::Model on a GPU: the same tensors, loss and gradient, with parameters, activations and gradient
// in its memory. What models::Model says of its functions holds, but that parameters are device memory and that a
// device may fail.
//
// The rows of a batch come from the host and the loss goes back, nothing else. Bits: the same in each run on one GPU;
// not those of the CPU, whose products add up in another order (gpu/README.md).
//
// A step is three calls: send() takes the rows there, compute() begins the passes, loss() waits for them. Between them
// the host is free, to begin what another GPU does with its part of the batch (gpu/models/split_model.h).
//
// Thread: one caller at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/device/device.h"
#include "models/families/model.h"

namespace rumor::gpu {

class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  virtual const ParamLayout& layout() const = 0;
  // The rows, for compute(); the batch is not looked at afterwards. all_rows: of the batch that these are a part of, or
  // batch.rows; loss and gradient are those of the sum over these rows, divided by all_rows. Errors: Errc::limit, too
  // little memory, what to reduce; Errc::usage, soft targets, which only the CPU has.
  virtual Result<void> send(const models::Batch& batch, std::uint32_t all_rows) = 0;
  // `gradient` is overwritten. What is begun follows from the two numbers of rows, from where these arrays lie and from
  // memory_bytes() alone, by slots that can be recorded; nothing else is left behind, so that who repeats a recording
  // need not call this (gpu/device/repeated.h). Requires: send() succeeded, and nothing was evaluated since;
  // layout().params() floats in both arrays. Errors: Errc::io, there are no matrix products; Errc::limit.
  virtual Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) = 0;
  // The loss of the last compute(); waits for it. Errors: Errc::io, the device failed.
  virtual Result<float> loss() = 0;
  // All three: the mean loss over the batch.
  Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                  const DeviceArray<float>& gradient);
  // In pieces of some rows. Errors: Errc::limit and Errc::io as above.
  virtual Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) = 0;
  // On the device, but for what products take. Nothing lies elsewhere than before unless this has grown.
  virtual std::size_t memory_bytes() const = 0;
};

// The error of send() for soft targets.
Error no_soft_targets();

// A model of config.family. It refers to `gpu`. Errors: those of models::make_model(); Errc::usage for a model that has
// no GPU version.
Result<std::unique_ptr<DeviceModel>> make_device_model(const Gpu& gpu, const models::ModelConfig& config,
                                                       Precision precision);

}  // namespace rumor::gpu
