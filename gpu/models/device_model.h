// DeviceModel: models::Model on a GPU: the same tensors, loss and gradient, with parameters, activations and gradient
// in GPU memory. Its functions have the contracts of models::Model, except that parameters are device memory and that a
// device may fail.
//
// Only the rows of a batch come from the host, and only the loss goes back. Every run on one GPU gives the same bits.
// They differ from the CPU's bits, because its products add in another order (gpu/README.md).
//
// A step is three calls: send() copies the rows to the device, compute() begins the passes, loss() waits for them.
// Between these calls the host is free to begin another GPU's part of the batch (gpu/models/split_model.h).
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
  // Sends the rows for compute(); the batch is not read afterwards. all_rows: the rows of the whole batch that these
  // rows are a part of, or batch.rows. Loss and gradient are sums over these rows, divided by all_rows. Errors:
  // Errc::limit, too little memory, saying what to reduce; Errc::usage, soft targets, which only the CPU supports.
  virtual Result<void> send(const models::Batch& batch, std::uint32_t all_rows) = 0;
  // Overwrites `gradient`. The work depends only on the two numbers of rows, on the addresses of these arrays and on
  // memory_bytes(), and uses slots that can be recorded. The call leaves no other state behind, so repeating a
  // recording replaces it (gpu/device/repeated.h). Requires: send() succeeded, and no evaluate() since;
  // layout().params() floats in both arrays. Errors: Errc::io, there are no matrix products; Errc::limit.
  virtual Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) = 0;
  // The loss of the last compute(); waits for it. Errors: Errc::io, the device failed.
  virtual Result<float> loss() = 0;
  // Makes all three calls. Returns the mean loss over the batch.
  Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                  const DeviceArray<float>& gradient);
  // Evaluates in pieces of some rows. Errors: Errc::limit and Errc::io as above.
  virtual Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) = 0;
  // Device memory without the scratch of products. Arrays move only if this value has grown.
  virtual std::size_t memory_bytes() const = 0;
};

// The error of send() for soft targets.
Error no_soft_targets();

// Makes a model of config.family. It refers to `gpu`. Errors: those of models::make_model(); Errc::usage for a model
// without a GPU version.
Result<std::unique_ptr<DeviceModel>> make_device_model(const Gpu& gpu, const models::ModelConfig& config,
                                                       Precision precision);

}  // namespace rumor::gpu
