#include "runtime/sim/methods/learners.h"

#include "models/evaluate/evaluation.h"
#include "runtime/base/check.h"

namespace rumor::sim {

Result<Learners> Learners::create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                  const ClusterOptions& options) {
  Learners l(config, options);
  l.data_ = std::move(data);
  models::ModelConfig shape = config.model;
  l.data_->describe(shape);
  auto model = models::make_model(shape);
  if (!model) return model.error();
  l.model_ = std::move(model).value();
  if (auto made = l.make_optimizer(); !made) return made.error();
  const auto count = static_cast<std::uint32_t>(options.nodes);
  for (std::uint32_t i = 0; i < count; ++i) {
    const models::Shard shard{i, count, config.seed, config.data.skew};
    if (auto exists = models::check_shard(*l.data_, shard); !exists) return exists.error();
    l.samplers_.emplace_back(l.data_, shard, config.batch_rules().rows(count), mix64(options.seed * 1000 + i),
                             l.model_->state_floats());
  }
  l.start_ = models::to_floats(
      options.start ? options.start->weights : models::initial_weights(*l.model_, config.seed, config.grid_bits),
      config.grid_bits);
  return l;
}

void Learners::gradient(std::size_t i, std::span<const float> weights, std::span<float> out) {
  model_->loss_and_gradient(weights, samplers_[i].next(), out);
}

Result<std::unique_ptr<models::Optimizer>> Learners::make_optimizer() const {
  return models::make_optimizer(config_->optimizer, params(), models::hidden_matrices(*model_));
}

std::unique_ptr<models::Optimizer> Learners::optimizer() const {
  auto made = make_optimizer();
  RUMOR_CHECK(made.ok());  // create() has tried it
  return std::move(made).value();
}

Duration Learners::step_time(std::size_t i) {
  const std::int64_t step = options_.step_of(i).count();
  return Duration(step + step_costs_.between(-step / 10, step / 10));
}

models::Evaluation Learners::evaluate(std::span<const float> weights) const {
  return evaluate_on_test(*model_, *data_, weights, UINT32_MAX);
}

}  // namespace rumor::sim
