#include "runtime/sim/methods/own_models.h"

#include "runtime/base/text.h"

namespace rumor::sim {

OwnModels::OwnModels(const MethodSetting& in, std::uint32_t degree)
    : config_(in.config),
      learners_(in.learners),
      record_(in),
      graph_(learners_.count(), degree, in.options.seed),
      copies_(in.config, in.options, learners_.layout(), learners_.start(), graph_.neighbours(), record_),
      peers_(learners_.count()),
      options_(in.options),
      absences_(in.absences),
      gradient_(learners_.params()) {
  for (Peer& peer : peers_) {
    peer.weights = learners_.start();
    peer.optimizer = learners_.optimizer();
  }
}

Result<void> OwnModels::check(const RunConfig& config) {
  if (!config.has_byte_budget()) return {};
  return Error{Errc::usage, str("exchange.mode = \"", config.mode, "\" knows no compress.bytes_per_update or ",
                                "bytes_per_second: give it a compress.density")};
}

Result<SimResult> OwnModels::run() {
  for (std::size_t i = 0; i < peers_.size(); ++i) turns_.push(now_, i);
  for (;;) {
    auto on = record_.watch(samples_, now_, [this] { return evaluate(); });
    if (!on) return on.error();
    if (!*on || samples_ >= config_.samples) break;
    const auto [at, peer] = turns_.pop();
    now_ = at;
    if (auto done = turn(peer); !done) return done.error();
  }
  std::vector<std::span<const float>> replicas;
  for (const std::size_t i : training()) replicas.emplace_back(peers_[i].weights);
  auto result = record_.conclude(samples_, now_, evaluate(), replicas);
  if (!result) return result;
  result->silent_fraction = steps_ > 0 ? 1 - static_cast<double>(told_) / static_cast<double>(steps_) : 0;
  copies_.report(*result);
  report(*result);
  return result;
}

std::vector<std::size_t> OwnModels::training() const {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (!peers_[i].weights.empty()) list.push_back(i);
  return list;
}

// A step has ended, or the peer is back, or waits for a model.
Result<void> OwnModels::turn(std::size_t peer) {
  Peer& p = peers_[peer];
  if (absences_.away(peer, now_)) {
    leave(peer);
    return {};
  }
  if (!p.here) come_back(peer);
  if (p.step > Duration{0})
    if (auto done = finish_step(peer); !done) return done;
  copies_.hear(peer, now_);
  if (p.weights.empty()) {
    const auto held = copies_.held(peer);
    if (held.empty()) {
      turns_.push(now_ + options_.step_of(peer), peer);
      return {};
    }
    p.weights.assign(held.front().weights.begin(), held.front().weights.end());
    p.optimizer = learners_.optimizer();
    copies_.adopt(peer, p.weights, now_);
  }
  begin(peer);
  p.step = step_time(peer);
  turns_.push(now_ + p.step, peer);
  return {};
}

// Nothing is told while the uplink has not sent the last message yet: the difference waits and costs no byte.
Result<void> OwnModels::finish_step(std::size_t peer) {
  Peer& p = peers_[peer];
  gradient(peer, gradient_);
  if (config_.optimizer.clip > 0) models::clip_by_norm(gradient_, config_.optimizer.clip);
  p.optimizer->step(gradient_, learners_.rate(progress()), gradient_, p.weights);
  for (std::size_t at = 0; at < gradient_.size(); ++at) p.weights[at] += gradient_[at];
  record_.computed(p.step);
  samples_ += config_.batch;
  ++steps_;
  if (copies_.uplink_busy(peer, now_) || !has_news(peer)) return {};
  ++told_;
  record_.update_made();
  return copies_.tell(peer, p.weights, config_.density_at(1, progress()), now_);
}

void OwnModels::leave(std::size_t peer) {
  Peer& p = peers_[peer];
  if (p.here) {
    graph_.leave(peer);
    copies_.forget(peer);
    copies_.connect(graph_.neighbours(), now_);
    p.weights.clear();
    p.step = Duration{0};
    p.here = false;
  }
  turns_.push(absences_.back(peer, now_), peer);
}

void OwnModels::come_back(std::size_t peer) {
  graph_.join(peer);
  copies_.connect(graph_.neighbours(), now_);
  peers_[peer].here = true;
}

}  // namespace rumor::sim
