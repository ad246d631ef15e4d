// Compressed averaging with neighbours.
#include "runtime/sim/methods/gossip_rules.h"
#include "runtime/sim/methods/methods.h"
#include "runtime/sim/methods/own_models.h"

namespace rumor::sim {

namespace {

class AverageRun final : public OwnModels {
 public:
  explicit AverageRun(const MethodSetting& in) : OwnModels(in, in.config.neighbour_rules.neighbours) {}

 private:
  void begin(std::size_t peer) override {
    const auto& neighbours = graph_.neighbours();
    const double density = config_.density_at(1, progress());
    const double asked = config_.neighbour_rules.consensus_rate, rate = asked > 0 ? asked : consensus_rate(density);
    for (const auto& copy : copies_.held(peer)) {
      const double weight = metropolis_weight(neighbours[peer].size(), neighbours[copy.of].size());
      draw_together(peers_[peer].weights, copies_.own(peer), copy.weights, rate * weight);
    }
  }

  void gradient(std::size_t peer, std::span<float> out) override {
    learners_.gradient(peer, peers_[peer].weights, out);
  }

  bool has_news(std::size_t peer) override {
    return has_drifted(peers_[peer].weights, copies_.own(peer), config_.neighbour_rules.drift_bound);
  }

  models::Evaluation evaluate() override { return learners_.evaluate(peers_[training().front()].weights); }

  void report(SimResult& result) override {
    const auto all = training();
    std::vector<float> mean(learners_.params());
    for (const std::size_t i : all)
      for (std::size_t at = 0; at < mean.size(); ++at)
        mean[at] += peers_[i].weights[at] / static_cast<float>(all.size());
    const models::Evaluation together = learners_.evaluate(mean);
    result.together_loss = together.loss;
    result.together_accuracy = together.accuracy;
    result.guarantee = "near each other, never equal: each has a model of its own, drawn to its neighbours'";
  }
};

}  // namespace

Result<SimResult> run_average(const MethodSetting& in) {
  if (auto fits = OwnModels::check(in.config); !fits) return fits.error();
  return AverageRun(in).run();
}

}  // namespace rumor::sim
