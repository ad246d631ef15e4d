#include "runtime/sim/methods/local_steps.h"

#include "runtime/base/text.h"
#include "runtime/sim/methods/lock_step.h"

namespace rumor::sim {

namespace {

class ModelAveraging {
 public:
  ModelAveraging(const RunConfig& config, Learners& learners, const OuterRule& rule)
      : config_(config),
        learners_(learners),
        outer_(rule, learners.params(), learners.count()),
        model_(learners.start()),
        own_(model_.size()),
        gradient_(model_.size()) {
    for (std::size_t i = 0; i < learners.count(); ++i) optimizers_.push_back(learners.optimizer());
  }

  const std::vector<float>& model() const { return model_; }

  void round(const Round& round) {
    for (const std::size_t i : round.lost) {
      optimizers_[i] = learners_.optimizer();
      outer_.forget(i);
    }
    std::vector<std::uint32_t> rows;
    for (const std::size_t i : round.peers) rows.push_back(learners_.rows(i));
    const std::vector<float> shares = shares_of(rows);
    for (std::size_t r = 0; r < round.peers.size(); ++r) {
      train(round.peers[r], round);
      outer_.add(round.peers[r], shares[r], model_, own_);
    }
    outer_.step(model_);
  }

 private:
  // From the model to own_, as peer i does.
  void train(std::size_t i, const Round& round) {
    own_ = model_;
    for (std::uint32_t step = 0; step < round.steps; ++step) {
      learners_.gradient(i, own_, gradient_);
      if (config_.optimizer.clip > 0) models::clip_by_norm(gradient_, config_.optimizer.clip);
      optimizers_[i]->step(gradient_, learners_.rate(round.progress(step)), gradient_, own_);
      for (std::size_t p = 0; p < own_.size(); ++p) own_[p] += gradient_[p];
    }
  }

  const RunConfig& config_;
  Learners& learners_;
  OuterStep outer_;
  std::vector<std::unique_ptr<models::Optimizer>> optimizers_;  // by peer
  std::vector<float> model_, own_, gradient_;
};

}  // namespace

Result<SimResult> average_models(const MethodSetting& in, const OuterRule& rule) {
  const std::uint32_t params = in.learners.params(), steps = in.config.round_rules.steps();
  ModelAveraging averaging(in.config, in.learners, rule);
  const double bytes = outer_message_bytes(rule, params);
  // A peer that joins late needs the momentum of the outer step as well.
  const std::size_t state_bytes = (rule.momentum > 0 ? 8u : 4u) * std::size_t{params};
  LockStep lock_step(in, {steps, in.config.round_rules.participation, state_bytes});
  const auto exchange = [&](const Round& round) {
    if (rule.entries > 0)
      lock_step.all_gather(round.peers, bytes);
    else
      lock_step.all_reduce(round.peers, bytes);
  };
  auto result = lock_step.run(averaging.model(), [&](const Round& round) { averaging.round(round); }, exchange);
  if (!result) return result.error();
  result->guarantee = str("one model after each round, by construction, at all who were in it (every ", steps,
                          " steps)");
  if (rule.entries > 0) {
    result->update_bytes_mean = bytes;
    result->ratio = result->dense_update_bytes / bytes;
    result->density = static_cast<double>(rule.entries) / params;
    result->bits_per_entry = result->bound_bits_per_entry = bytes * 8 / rule.entries;
  }
  return result;
}

}  // namespace rumor::sim
