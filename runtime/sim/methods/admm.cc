// Consensus ADMM in lock-step.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/methods/consensus.h"
#include "runtime/sim/methods/lock_step.h"
#include "runtime/sim/methods/methods.h"

namespace rumor::sim {

void add_pull(float rho, const ConsensusPeer& peer, std::span<const float> z, std::span<float> gradient) {
  for (std::size_t p = 0; p < z.size(); ++p) gradient[p] += rho * (peer.x[p] - z[p] + peer.u[p]);
}

void add_to_consensus(float share, const ConsensusPeer& peer, std::span<float> z) {
  for (std::size_t p = 0; p < z.size(); ++p) z[p] += share * (peer.x[p] + peer.u[p]);
}

void update_dual(ConsensusPeer& peer, std::span<const float> z) {
  for (std::size_t p = 0; p < z.size(); ++p) peer.u[p] += peer.x[p] - z[p];
}

namespace {

class Consensus {
 public:
  Consensus(const RunConfig& config, Learners& learners)
      : config_(config),
        learners_(learners),
        rho_(static_cast<float>(config.round_rules.penalty)),
        z_(learners.start()),
        gradient_(z_.size()),
        peers_(learners.count()),
        optimizers_(learners.count()) {
    for (std::size_t i = 0; i < peers_.size(); ++i) begin(i);
  }

  const std::vector<float>& z() const { return z_; }

  void round(const Round& round) {
    for (const std::size_t i : round.lost) begin(i);
    for (const std::size_t i : round.peers) minimize(i, round);
    std::fill(z_.begin(), z_.end(), 0.0f);
    const float share = 1.0f / static_cast<float>(round.peers.size());
    for (const std::size_t i : round.peers) add_to_consensus(share, peers_[i], z_);
    for (const std::size_t i : round.peers) update_dual(peers_[i], z_);
  }

 private:
  // A peer that is new or has lost its state starts at the consensus, with a zero dual.
  void begin(std::size_t i) {
    peers_[i] = {z_, std::vector<float>(z_.size())};
    optimizers_[i] = learners_.optimizer();
  }

  void minimize(std::size_t i, const Round& round) {
    ConsensusPeer& peer = peers_[i];
    for (std::uint32_t step = 0; step < round.steps; ++step) {
      learners_.gradient(i, peer.x, gradient_);
      add_pull(rho_, peer, z_, gradient_);
      if (config_.optimizer.clip > 0) models::clip_by_norm(gradient_, config_.optimizer.clip);
      optimizers_[i]->step(gradient_, learners_.rate(round.progress(step)), gradient_, peer.x);
      for (std::size_t p = 0; p < z_.size(); ++p) peer.x[p] += gradient_[p];
    }
  }

  const RunConfig& config_;
  Learners& learners_;
  const float rho_;
  std::vector<float> z_, gradient_;
  std::vector<ConsensusPeer> peers_;
  std::vector<std::unique_ptr<models::Optimizer>> optimizers_;  // by peer
};

}  // namespace

Result<SimResult> run_admm(const MethodSetting& in) {
  Consensus consensus(in.config, in.learners);
  const std::size_t bytes = 4 * consensus.z().size();
  const std::uint32_t steps = in.config.round_rules.steps();
  LockStep lock_step(in, {.steps = steps, .state_bytes = bytes});
  auto result = lock_step.run(
      consensus.z(), [&](const Round& round) { consensus.round(round); },
      [&](const Round& round) { lock_step.all_reduce(round.peers, static_cast<double>(bytes)); });
  if (!result) return result.error();
  result->guarantee = str("one consensus z after each round, by construction (every ", steps,
                          " steps); peers' own x are near it");
  return result;
}

}  // namespace rumor::sim
