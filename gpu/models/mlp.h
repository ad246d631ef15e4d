// DeviceMlp: the multi-layer perceptron of models/families/mlp.h on a GPU (gpu/models/device_model.h).
//
// Memory, device, for each row of the largest batch seen: a float per input, and the memory that gpu/models/dense.h
// says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/models/dense.h"
#include "gpu/models/device_model.h"

namespace rumor::gpu {

class DeviceMlp final : public DeviceModel {
 public:
  // Refers to `gpu`. Errors: those of models::make_mlp().
  static Result<DeviceMlp> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision);

  const ParamLayout& layout() const override { return layout_; }
  std::uint32_t inputs() const { return dense_.inputs(); }
  std::uint32_t classes() const { return dense_.classes(); }

  Result<void> send(const models::Batch& batch, std::uint32_t all_rows) override;
  Result<void> compute(const DeviceArray<float>& params, const DeviceArray<float>& gradient) override;
  Result<float> loss() override { return dense_.loss(); }
  // Evaluates in pieces of 256 rows.
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) override;
  // out: [rows, classes()], on the host. Errors: as evaluate().
  Result<void> predict(const DeviceArray<float>& params, const models::Batch& batch, std::span<float> out);
  std::size_t memory_bytes() const override { return x_.bytes() + dense_.memory_bytes(); }

 private:
  DeviceMlp(const Gpu& gpu, ParamLayout layout, std::vector<std::uint32_t> widths, Precision precision)
      : gpu_(&gpu), layout_(std::move(layout)), dense_(gpu, layout_, std::move(widths), precision) {}
  Result<void> send_rows(std::span<const float> x, std::uint32_t rows);
  // Forward pass of rows without training.
  Result<void> forward(const float* params, std::span<const float> x, std::uint32_t rows);

  const Gpu* gpu_;
  ParamLayout layout_;
  std::uint32_t rows_ = 0;  // that were sent last
  DeviceArray<float> x_;
  DeviceDense dense_;
};

}  // namespace rumor::gpu
