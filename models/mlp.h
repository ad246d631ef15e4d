// Mlp: linear layers with ReLU between them and softmax cross-entropy at the end.
//
// Parameters are named and shaped as PyTorch's nn.Sequential(Linear, ReLU, Linear, ReLU, ..., Linear) has
// them: 0.weight [out, in], 0.bias [out], 2.weight, 2.bias, ... so that an export loads there as it is.
//
// Cost of a step: 6 floating-point operations per weight and row (2 forward, 4 backward; the first layer
// needs no gradient of its input: 4). Memory: two copies of every activation for the largest batch seen.
//
// Bits: all sums run in kernels (models/kernel_table.h), softmax in double through models/portable_math.h.
#pragma once

#include <memory>
#include <vector>

#include "models/model.h"

namespace rumor::models {

// Errors: Errc::usage (no inputs, classes outside [2, 256], an empty layer), Errc::limit (too many
// parameters).
Result<std::unique_ptr<Model>> make_mlp(const ModelConfig& config);

class Mlp final : public Model {
 public:
  // widths: inputs, hidden layers, classes. Requires: `layout` made for these widths.
  Mlp(ParamLayout layout, std::vector<std::uint32_t> widths);

  const ParamLayout& layout() const override { return layout_; }
  float loss_and_gradient(std::span<const float> params, const Batch& batch,
                          std::span<float> gradient) override;
  // In pieces of 256 rows, so a whole test set may be passed.
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;

 private:
  struct Layer {
    std::uint32_t in = 0, out = 0;
    std::uint32_t weight = 0, bias = 0;  // offsets in the parameter vector
    std::vector<float> by_unit;          // activations after this layer, [out][rows]
    std::vector<float> by_row;           // the same, [rows][out]
    std::vector<float> change;           // d loss / d (this layer's sums), [rows][out]
  };

  void forward(const float* params, const float* x, std::uint32_t rows);
  // Per row: loss, and whether the largest output is the label. With `change`, d (mean loss) / d outputs as
  // well.
  void softmax(const std::uint8_t* label, std::uint32_t rows, float* change);
  void backward(const float* params, const float* x, std::uint32_t rows, float* gradient);
  void check(std::span<const float> params, const Batch& batch) const;

  ParamLayout layout_;
  std::vector<Layer> layers_;
  std::vector<float> x_by_unit_;  // [inputs][rows]
  std::vector<double> exponentials_;
  double loss_sum_ = 0;  // of the last softmax()
  std::uint32_t right_ = 0;
};

}  // namespace rumor::models
