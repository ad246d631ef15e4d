// DeviceMlp: the multi-layer perceptron of models/mlp.h on a GPU (gpu/device_model.h).
//
// Memory, device, for each row of the largest batch seen: a float for every unit and input, and two more for every unit
// of the widest layer; and what products take (gpu/model_table.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device_model.h"

namespace rumor::gpu {

class DeviceMlp final : public DeviceModel {
 public:
  // Refers to `gpu`. Errors: those of models::make_mlp().
  static Result<DeviceMlp> create(const Gpu& gpu, const models::ModelConfig& config, Precision precision);

  const ParamLayout& layout() const override { return layout_; }
  std::uint32_t inputs() const { return widths_.front(); }
  std::uint32_t classes() const { return widths_.back(); }

  Result<float> loss_and_gradient(const DeviceArray<float>& params, const models::Batch& batch,
                                  const DeviceArray<float>& gradient) override;
  // In pieces of 256 rows.
  Result<models::Evaluation> evaluate(const DeviceArray<float>& params, const models::Batch& batch) override;
  // out: [rows, classes()], on the host. Errors: as evaluate().
  Result<void> predict(const DeviceArray<float>& params, const models::Batch& batch, std::span<float> out);
  std::size_t memory_bytes() const override;

 private:
  struct Layer {
    std::uint32_t in = 0, out = 0;
    std::uint32_t weight = 0, bias = 0;  // where they lie in the parameters: [out][in], [out]
    DeviceArray<float> activation;       // [rows][out]: after ReLU, the last without
  };

  DeviceMlp(const Gpu& gpu, ParamLayout layout, std::vector<std::uint32_t> widths, Precision precision);
  Result<void> make_room(std::uint32_t rows);
  Result<void> forward(const float* params, std::span<const float> x, std::uint32_t rows);
  void compare(std::span<const std::uint8_t> label, std::uint32_t rows);
  Result<void> backward(const float* params, std::uint32_t rows, float* gradient);
  Result<std::vector<float>> outputs(const float* params, std::span<const float> x, std::uint32_t rows);
  // The numbers that go into layer i, [rows][in].
  const float* input_of(std::size_t i) const { return i == 0 ? x_.data() : layers_[i - 1].activation.data(); }

  const Gpu* gpu_;
  ParamLayout layout_;
  std::vector<std::uint32_t> widths_;
  Precision precision_;
  std::vector<Layer> layers_;
  std::uint32_t rows_max_ = 0;  // for which there is room
  DeviceArray<float> x_;
  DeviceArray<float> change_, change_below_;  // d loss / d (a layer's sums): [rows][out]
  DeviceArray<float> partial_;                // of sums over rows
  DeviceArray<std::uint16_t> label_;
  DeviceArray<float> row_loss_;
  DeviceArray<double> total_loss_;
};

}  // namespace rumor::gpu
