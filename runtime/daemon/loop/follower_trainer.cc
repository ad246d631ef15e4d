#include "runtime/daemon/loop/follower_trainer.h"

#include <algorithm>
#include <utility>

#include "models/weights/model_json.h"
#include "runtime/base/check.h"
#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/replica/replica.h"

namespace rumor::daemon {

Result<std::unique_ptr<FollowerTrainer>> FollowerTrainer::create(const RunConfig& config,
                                                                 const models::DataSet& data) {
  models::ModelConfig wanted = config.model;
  data.describe(wanted);
  auto model = models::make_model(wanted);
  if (!model) return model.error();
  return std::unique_ptr<FollowerTrainer>(
      new FollowerTrainer(std::move(model).value(), config.seed, config.grid_bits));
}

LargeVector<std::int32_t> FollowerTrainer::initial_weights() const {
  return models::initial_weights(*model_, seed_, grid_bits_);
}

Result<void> FollowerTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  const bool learned = std::any_of(residual.begin(), residual.end(), [](float change) { return change != 0; });
  if (!learned && optimizer_state.empty()) return {};
  return Error{Errc::mismatch,
               "it is of a peer that trains, and following would lose what that peer has learned and not sent yet; "
               "choose another --state directory"};
}

void FollowerTrainer::follow(Replica& replica) { (void)replica.refresh(parallel()); }

StepResult FollowerTrainer::step(const StepPlan&) {
  RUMOR_CHECK(false);
  return {};
}

models::Evaluation FollowerTrainer::evaluate(std::span<const float>, std::uint32_t) {
  RUMOR_CHECK(false);
  return {};
}

Result<Training> follower_training(const RunConfig& config) {
  auto data = models::describe_data(config.data);
  if (!data) return data.error();
  auto start = models::load_start_weights(config.weights, config.model, *data, config.grid_bits);
  if (!start) return start.error();
  auto trainer = FollowerTrainer::create(config, *data);
  if (!trainer) return trainer.error();
  models::ModelConfig model = config.model;
  data->describe(model);
  auto tokenizer = tokenizer_text(config);
  if (!tokenizer) return tokenizer.error();
  Training training{
      .trainer = {}, .start = std::move(start).value(), .model_json = models::model_json(model)};
  training.adapter_json = adapter_text(config);
  training.tokenizer_json = std::move(tokenizer).value();
  training.trainer = std::move(trainer).value();
  return training;
}

Result<Training> own_training(const PeerOptions& options, const NodeId& node) {
  const auto& following = options.following;
  const bool needs_data = !following || following->audits || (following->exports && following->exports->best);
  return needs_data ? built_in_training(options, node) : follower_training(options.config);
}

}  // namespace rumor::daemon
