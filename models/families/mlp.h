// Mlp: linear layers with ReLU between them and softmax cross-entropy at the end (models/layers/dense.h).
//
// Parameters are named and shaped as PyTorch's nn.Sequential(Linear, ReLU, Linear, ReLU, ..., Linear) has
// them: 0.weight [out, in], 0.bias [out], 2.weight, 2.bias, ... so that an export loads there as it is.
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
  // widths: inputs, hidden layers, classes. Requires: `layout` made for these widths.
  Mlp(ParamLayout layout, const std::vector<std::uint32_t>& widths);

  const ParamLayout& layout() const override { return layout_; }
  float loss_and_gradient(std::span<const float> params, const Batch& batch,
                          std::span<float> gradient) override;
  // In pieces of 256 rows, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override { return std::size_t{rows} * layers_.classes(); }
  std::size_t memory_bytes() const override { return layers_.memory_bytes(); }
  void set_parallel(Parallel* parallel) override { layers_.set_parallel(parallel); }

 private:
  void check(std::span<const float> params, const Batch& batch) const;

  ParamLayout layout_;
  DenseLayers layers_;
};

}  // namespace rumor::models
