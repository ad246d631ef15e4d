// AdaptedModel: a frozen language model and its adapters (models/families/adapters.h), as a model whose parameters are
// the adapters alone.
//
// The backward pass makes no gradient of the base: no product for its weights, none for tables and norms. Thread and
// bits as models/families/model.h. Memory: that of the model; the base's weights are shared.
#pragma once

#include <memory>

#include "models/families/adapters.h"

namespace rumor::models {

// The model of config.family with config.adapter. Errors: those of plan_adapters() and of the family; Errc::usage
// without a base, or with one of another size; Errc::usage for a part of a model.
Result<std::unique_ptr<Model>> make_adapted_model(const ModelConfig& config);

class AdaptedModel final : public Model {
 public:
  // Requires: plan_adapters() made `plan` for `whole`, and `base` has as many weights.
  AdaptedModel(std::unique_ptr<Model> whole, std::shared_ptr<const FrozenBase> base, AdapterPlan plan);

  const ParamLayout& layout() const override { return adapters_.plan().layout; }
  // A uniform in +-1 / sqrt(inputs), which is PEFT's Kaiming with a = sqrt(5); B zero.
  TensorStart start_of(const TensorInfo& tensor) const override;
  std::uint32_t hidden_matrices(const TensorInfo&) const override { return 1; }
  void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
               std::span<float> above) override;
  float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                 std::span<const float> above_change, std::span<float> gradient,
                 std::span<float> below_change) override;
  Evaluation evaluate(std::span<const float> params, const Batch& batch) override;
  void predict(std::span<const float> params, const Batch& batch, std::span<float> out) override;
  std::size_t predictions(std::uint32_t rows) const override { return whole_->predictions(rows); }
  std::uint64_t multiply_adds(std::uint32_t rows) const override { return whole_->multiply_adds(rows); }
  std::size_t memory_bytes() const override { return whole_->memory_bytes() + adapters_.memory_bytes(); }
  void set_parallel(Parallel* parallel) override { whole_->set_parallel(parallel); }

 private:
  std::shared_ptr<const FrozenBase> base_;
  Adapters adapters_;
  std::unique_ptr<Model> whole_;  // refers to adapters_
};

}  // namespace rumor::models
