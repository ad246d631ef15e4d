// MethodRecord: the figures of a training method that only the simulator has, gathered during the run.
//
// Thread: one owner. Memory: a curve.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/sim/methods/method_setting.h"

namespace rumor::sim {

class MethodRecord {
 public:
  explicit MethodRecord(const MethodSetting& in)
      : config_(in.config),
        options_(in.options),
        learners_(in.learners),
        progress_(in.progress),
        traffic_(in.options.nodes),
        curve_(in.config.samples, in.options.curve_points) {}

  // Counts bytes that one peer sends to another, or to a receiver that is no peer.
  void sent(std::size_t from, double bytes) { traffic_[from].sent += bytes; }
  void received(std::size_t to, double bytes) { traffic_[to].received += bytes; }
  void computed(Duration time) { computed_ += time; }
  void update_made() { ++updates_; }

  // Evaluates the run's model as it is now.
  using Evaluate = std::function<models::Evaluation()>;
  // Adds a point to the curve where one is due, and reports the run's progress. False: stop early. Errors:
  // Errc::not_finite.
  Result<bool> watch(std::uint64_t samples, TimePoint now, const Evaluate& evaluate);

  // `replicas`: each peer's weights, [params] each; one for all where they are the same by construction. `evaluation`:
  // of what the run gives its user. What is sent counts as dense 32-bit numbers. Errors: Errc::not_finite.
  Result<SimResult> conclude(std::uint64_t samples, TimePoint now, const models::Evaluation& evaluation,
                             std::span<const std::span<const float>> replicas);

 private:
  struct Traffic {
    double sent = 0, received = 0;
  };
  Result<CurvePoint> point(std::uint64_t samples, TimePoint now, const models::Evaluation& evaluation) const;
  double mean_sent() const;

  const RunConfig& config_;
  const ClusterOptions& options_;
  const Learners& learners_;
  const Progress& progress_;
  std::vector<Traffic> traffic_;
  Curve curve_;
  std::uint64_t updates_ = 0;
  Duration computed_{0};
  bool stopped_ = false;
};

}  // namespace rumor::sim
