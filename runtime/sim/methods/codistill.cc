// Codistillation.
#include "runtime/sim/methods/ensemble.h"
#include "runtime/sim/methods/methods.h"
#include "runtime/sim/methods/own_models.h"

namespace rumor::sim {

namespace {

// Of the run; before it, nobody knows enough to teach.
constexpr double burn_in = 0.1;
// Of a step's arithmetic, what its forward pass is; a teacher costs one.
constexpr double forward_share = 1.0 / 3;

class CodistillRun final : public OwnModels {
 public:
  explicit CodistillRun(const MethodSetting& in)
      : OwnModels(in, in.config.neighbour_rules.teachers), pupils_(in.learners.count()) {}

 private:
  struct Pupil {
    std::size_t teachers = 0;      // asked in the step under way
    std::uint32_t steps_kept = 0;  // since it told the others of itself
  };

  void begin(std::size_t peer) override {
    pupils_[peer].teachers = progress() < burn_in ? 0 : copies_.held(peer).size();
  }

  Duration step_time(std::size_t peer) override {
    const double teachers = static_cast<double>(pupils_[peer].teachers);
    return from_seconds(to_seconds(learners_.step_time(peer)) * (1 + forward_share * teachers));
  }

  void gradient(std::size_t peer, std::span<float> out) override {
    models::Batch batch = learners_.batch(peer);
    if (pupils_[peer].teachers > 0) {
      std::vector<std::span<const float>> teachers;
      for (const auto& copy : copies_.held(peer)) teachers.push_back(copy.weights);
      if (mean_prediction(learners_.model(), teachers, batch, taught_))
        batch.soft = {taught_, static_cast<float>(config_.neighbour_rules.agreement)};
    }
    learners_.model().loss_and_gradient(peers_[peer].weights, batch, out);
    ++pupils_[peer].steps_kept;
  }

  bool has_news(std::size_t peer) override {
    if (pupils_[peer].steps_kept < config_.neighbour_rules.refresh_every) return false;
    pupils_[peer].steps_kept = 0;
    return true;
  }

  // Mean over peers.
  models::Evaluation evaluate() override {
    const auto all = training();
    models::Evaluation mean;
    for (const std::size_t i : all) {
      const models::Evaluation own = learners_.evaluate(peers_[i].weights);
      mean.loss += own.loss / static_cast<double>(all.size());
      if (own.accuracy) mean.accuracy = mean.accuracy.value_or(0) + *own.accuracy / static_cast<double>(all.size());
    }
    return mean;
  }

  void report(SimResult& result) override {
    std::vector<std::span<const float>> all;
    for (const std::size_t i : training()) all.emplace_back(peers_[i].weights);
    const models::Evaluation together = evaluate_ensemble(learners_.model(), learners_.data(), all);
    result.together_loss = together.loss;
    result.together_accuracy = together.accuracy;
    result.guarantee = "none of weights: each has a model of its own, drawn to what its teachers predict";
  }

  std::vector<Pupil> pupils_;
  std::vector<float> taught_;
};

}  // namespace

Result<SimResult> run_codistill(const MethodSetting& in) {
  if (auto fits = OwnModels::check(in.config); !fits) return fits.error();
  return CodistillRun(in).run();
}

}  // namespace rumor::sim
