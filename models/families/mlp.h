// Mlp: linear layers with ReLU between them and softmax cross-entropy at the end (models/layers/dense.h).
//
// Parameters are named and shaped as PyTorch's nn.Sequential(Linear, ReLU, Linear, ReLU, ..., Linear) has
// them: 0.weight [out, in], 0.bias [out], 2.weight, 2.bias, ... so that an export loads there as it is.
//
// Units of a part (models/families/part.h): the linear layers. A border has the outputs of the ReLU there.
#pragma once

#include <memory>
#include <vector>

#include "models/families/model.h"
#include "models/layers/dense.h"

namespace rumor::models {

// Errors: Errc::usage (no inputs, classes outside [2, 256], an empty layer), Errc::limit (too many
// parameters).
Result<std::unique_ptr<Model>> make_mlp(const ModelConfig& config);

class Mlp final : public Model {
 public:
  // widths: of the part, inputs, hidden layers, outputs. Requires: `layout` made for these widths.
  Mlp(ParamLayout layout, const std::vector<std::uint32_t>& widths, ModelPart part);

  const ParamLayout& layout() const override { return layout_; }
  ModelPart part() const override { return part_; }
  BorderFloats border_floats() const override;
  void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
               std::span<float> above) override;
  float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                 std::span<const float> above_change, std::span<float> gradient,
                 std::span<float> below_change) override;
  // In pieces of 256 rows, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override { return std::size_t{rows} * layers_.classes(); }
  std::uint32_t exit_classes() const override { return part_.is_last() ? layers_.classes() : 0; }
  void predict_exit(std::span<float> out) override;
  std::size_t memory_bytes() const override { return layers_.memory_bytes(); }
  void set_parallel(Parallel* parallel) override { layers_.set_parallel(parallel); }

 private:
  void check(std::span<const float> params, const Batch& batch, std::span<const float> input) const;
  std::span<const float> input(const Batch& batch, std::span<const float> below) const {
    return part_.is_first() ? batch.x : below;
  }

  ParamLayout layout_;
  ModelPart part_;
  DenseLayers layers_;
};

}  // namespace rumor::models
