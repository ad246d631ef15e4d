#include "runtime/training/own_model.h"

#include "models/evaluate/ensemble.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/exchange/neighbourhood.h"

namespace rumor {

namespace {

// Labels and teachers together move the weights as far as labels alone: their losses add up to 1 + agreement.
void scale(std::span<float> gradient, float factor) {
  for (float& value : gradient) value *= factor;
}

}  // namespace

OwnModel::OwnModel(const RunConfig& config, BuiltInModel& built)
    : built_(built),
      clip_(config.optimizer.clip),
      agreement_(static_cast<float>(config.neighbour_rules.agreement)) {
  if (config.averages()) pull_.assign(built.layout().params(), 0.0f);
}

void OwnModel::pull_towards(const Neighbourhood& neighbours, double share) {
  neighbours.pull(share, pull_, parallel_ != nullptr ? *parallel_ : alone_);
}

void OwnModel::learn_from(std::span<const std::span<const std::int32_t>> teachers) {
  teachers_.resize(teachers.size());
  for (std::size_t t = 0; t < teachers.size(); ++t) {
    teachers_[t].resize(teachers[t].size());
    models::to_floats(teachers[t], built_.grid_bits, teachers_[t]);
  }
}

Recipe::Made OwnModel::make(const StepPlan& plan, const Seen& seen, std::span<float> change) {
  models::Batch batch = built_.sampler->next(plan.size);
  if (!teachers_.empty()) {
    const std::vector<std::span<const float>> all(teachers_.begin(), teachers_.end());
    models::mean_prediction(*built_.model, all, batch, taught_);
    batch.soft = {taught_, agreement_};
  }
  const double loss = built_.model->loss_and_gradient(seen.weights, batch, change);
  if (!teachers_.empty()) scale(change, 1 / (1 + agreement_));
  if (clip_ > 0) models::clip_by_norm(change, clip_);
  built_.optimizer->step(change, plan.rate, change, seen.weights);
  for (std::size_t i = 0; i < pull_.size(); ++i) change[i] += pull_[i];
  return {loss, {}};
}

void OwnModel::add_memory(MemoryUse& use) const {
  use.view += capacity_bytes(pull_);
  for (const LargeVector<float>& teacher : teachers_) use.view += capacity_bytes(teacher);
}

}  // namespace rumor
