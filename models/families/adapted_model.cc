#include "models/families/adapted_model.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_adapted_model(const ModelConfig& config) {
  if (config.units != UnitRange{})
    return Error{Errc::usage, str("model.adapter = \"", config.adapter.kind, "\" is not possible for a part of a model",
                                  " yet; set pipeline.stages = 1")};
  ModelConfig frozen = config;
  frozen.adapter = {};
  auto whole = make_model(frozen);
  if (!whole) return whole.error();
  auto plan = plan_adapters(config, **whole);
  if (!plan) return plan.error();
  const std::shared_ptr<const FrozenBase>& base = config.adapter.base;
  if (base == nullptr)
    return Error{Errc::usage, str("model.adapter = \"", config.adapter.kind, "\" needs the weights that stay frozen: ",
                                  "name their file or folder with --weights (model.weights)")};
  if (base->weights.size() != (*whole)->layout().params())
    return Error{Errc::mismatch, str("the frozen base has ", base->weights.size(), " weights, and the model has ",
                                     (*whole)->layout().params(), "; is its vocabulary that of the data?")};
  return std::unique_ptr<Model>(
      std::make_unique<AdaptedModel>(std::move(whole).value(), base, std::move(plan).value()));
}

AdaptedModel::AdaptedModel(std::unique_ptr<Model> whole, std::shared_ptr<const FrozenBase> base, AdapterPlan plan)
    : base_(std::move(base)), adapters_(std::move(plan)), whole_(std::move(whole)) {
  RUMOR_CHECK(base_->weights.size() == whole_->layout().params());
  whole_->adapt(adapters_);
}

TensorStart AdaptedModel::start_of(const TensorInfo& tensor) const {
  if (!tensor.name.ends_with("lora_A.weight")) return {};
  return {TensorStart::Kind::uniform, 1, 3 * tensor.cols()};
}

void AdaptedModel::forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                           std::span<float> above) {
  adapters_.use(params, {});
  whole_->forward(base_->weights, batch, below, above);
}

float AdaptedModel::backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                             std::span<const float> above_change, std::span<float> gradient,
                             std::span<float> below_change) {
  check_backward(batch.rows, above_change, gradient, below_change);
  adapters_.use(params, gradient);
  return whole_->backward(base_->weights, batch, below, above_change, {}, below_change);
}

Evaluation AdaptedModel::evaluate(std::span<const float> params, const Batch& batch) {
  adapters_.use(params, {});
  return whole_->evaluate(base_->weights, batch);
}

void AdaptedModel::predict(std::span<const float> params, const Batch& batch, std::span<float> out) {
  adapters_.use(params, {});
  whole_->predict(base_->weights, batch, out);
}

}  // namespace rumor::models
