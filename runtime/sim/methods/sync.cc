// Dense averaging at every step.
#include <algorithm>

#include "runtime/sim/methods/absences.h"
#include "runtime/sim/methods/method_record.h"
#include "runtime/sim/methods/methods.h"

namespace rumor::sim {

namespace {

class SyncRun {
 public:
  SyncRun(const RunConfig& config, const ClusterOptions& options, Learners& learners, const Absences& absences,
          const Progress& progress)
      : config_(config),
        options_(options),
        learners_(learners),
        absences_(absences),
        record_(config, options, learners, progress),
        optimizer_(learners.optimizer()),
        weights_(learners.start()),
        gradient_(weights_.size()),
        sum_(weights_.size()) {}

  Result<SimResult> run() {
    const auto evaluate = [this] { return learners_.evaluate(weights_); };
    for (;;) {
      auto on = record_.watch(samples_, now_, evaluate);
      if (!on) return on.error();
      if (!*on || samples_ >= config_.samples) break;
      step();
    }
    const std::span<const float> all[] = {weights_};
    return record_.conclude(samples_, now_, evaluate(), all);
  }

 private:
  // One step of all who are here; gradients are added in the order of peers.
  void step() {
    std::vector<std::size_t> here;
    while (here.empty()) {
      TimePoint soonest = never;
      for (std::size_t i = 0; i < learners_.count(); ++i) {
        if (!absences_.away(i, now_)) here.push_back(i);
        soonest = std::min(soonest, absences_.back(i, now_));
      }
      if (here.empty()) now_ = soonest;
    }
    std::fill(sum_.begin(), sum_.end(), 0.0f);
    const float share = 1.0f / static_cast<float>(here.size());
    Duration slowest{0};
    for (const std::size_t i : here) {
      learners_.gradient(i, weights_, gradient_);
      for (std::size_t p = 0; p < sum_.size(); ++p) sum_[p] += gradient_[p] * share;
      const Duration takes = learners_.step_time(i);
      record_.computed(takes);
      record_.update_made();
      slowest = std::max(slowest, takes);
    }
    if (config_.optimizer.clip > 0) models::clip_by_norm(sum_, config_.optimizer.clip);
    const double progress = static_cast<double>(samples_) / static_cast<double>(config_.samples);
    optimizer_->step(sum_, learners_.rate(progress), gradient_, weights_);
    for (std::size_t p = 0; p < sum_.size(); ++p) weights_[p] += gradient_[p];
    samples_ += here.size() * config_.batch;
    now_ += slowest + all_reduce(here);
  }

  // What a ring of these costs, and takes.
  Duration all_reduce(const std::vector<std::size_t>& ring) {
    const double peers = static_cast<double>(ring.size());
    const double bytes = 2.0 * (peers - 1) / peers * 4.0 * static_cast<double>(weights_.size());
    for (const std::size_t i : ring) {
      record_.sent(i, bytes);
      record_.received(i, bytes);
    }
    const NetworkModel& net = options_.network;
    const double rate = static_cast<double>(std::min(net.up_bytes_per_second, net.down_bytes_per_second));
    return from_seconds(bytes / rate + 2.0 * (peers - 1) * to_seconds(net.latency_max));
  }

  const RunConfig& config_;
  const ClusterOptions& options_;
  Learners& learners_;
  const Absences& absences_;
  MethodRecord record_;
  std::unique_ptr<models::Optimizer> optimizer_;
  std::vector<float> weights_, gradient_, sum_;
  std::uint64_t samples_ = 0;
  TimePoint now_{};
};

}  // namespace

Result<SimResult> run_sync(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress) {
  auto absences = Absences::create(options, config.mode);
  if (!absences) return absences.error();
  auto learners = Learners::create(config, std::move(data), options);
  if (!learners) return learners.error();
  auto result = SyncRun(config, options, *learners, *absences, progress).run();
  if (!result) return result.error();
  result->guarantee = "one model by construction: all step on the same mean";
  result->update_bytes_mean = result->dense_update_bytes;
  result->ratio = result->density = 1;
  result->bits_per_entry = result->bound_bits_per_entry = 32;
  return result;
}

}  // namespace rumor::sim
