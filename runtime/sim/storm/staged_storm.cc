#include "runtime/sim/storm/staged_storm.h"

#include <algorithm>
#include <utility>

#include "runtime/sim/stages/staged_peers.h"
#include "runtime/sim/storm/trained_storm.h"

namespace rumor::sim {

namespace {

constexpr FaultSet not_for_stages =
    fault_bit(FaultKind::clone) | fault_bit(FaultKind::disk_foreign) | fault_bit(FaultKind::random_bytes) |
    fault_bit(FaultKind::flipped_bits) | fault_bit(FaultKind::false_have) | fault_bit(FaultKind::withholds) |
    fault_bit(FaultKind::floods);

class StagedStorm final : private TrainedStorm {
 public:
  StagedStorm(StagedPeers& peers, const StormRequest& request, StormPlan plan, std::uint64_t samples,
              const Progress& progress)
      : TrainedStorm(request, with_peers(std::move(plan), &peers), samples), peers_(peers), progress_(progress) {
    peers_.watch(world_, plan_.checkpoint_every);
  }

  StagedStormResult run(const std::string& command);

 private:
  static StormPlan with_peers(StormPlan plan, StagedPeers* peers) {
    plan.world.make_peer = [peers](const PeerStart& start) { return peers->make_peer(start); };
    return plan;
  }
  std::uint64_t samples() const override { return peers_.samples(); }
  bool complete() const override { return peers_.complete(); }
  bool show() override { return peers_.show(progress_); }
  void conclude() override {
    if (!stopped_) result_ = peers_.conclude();
  }

  StagedPeers& peers_;
  const Progress& progress_;
  StagedResult result_;
};

StagedStormResult StagedStorm::run(const std::string& command) {
  StagedStormResult all;
  all.report = run_storm(command);
  all.result = std::move(result_);
  // To the sum of what is left, which the checkers have made.
  for (StageResult& stage : all.result.stages) stage.run.identical = !stopped_;
  all.result.stopped_early = stopped_;
  put_strikes(all.result);
  return all;
}

}  // namespace

StormRequest fitted_to_stages(StormRequest request, const RunConfig& config, const ClusterOptions& options) {
  if (request.nodes == 0) request.nodes = options.nodes;
  request.allowed &= ~not_for_stages;
  request.forced &= ~not_for_stages;
  ClusterOptions sources = options;
  sources.nodes = (request.nodes + config.pipeline.stages - 1) / config.pipeline.stages;
  request.training = expected_training(config, sources);
  return request;
}

Result<StagedStormResult> run_staged_storm(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                           const ClusterOptions& options, const StormRequest& request,
                                           const std::string& command, const Progress& progress) {
  const StormRequest wanted = fitted_to_stages(request, config, options);
  ClusterOptions sized = options;
  sized.nodes = wanted.nodes;
  auto peers = StagedPeers::create(config, std::move(data), sized);
  if (!peers) return peers.error();
  StormPlan plan = draw_plan(wanted);
  plan.runs = (*peers)->models();
  plan.world.model = *std::max_element(plan.runs.begin(), plan.runs.end(), [](const SimModel& a, const SimModel& b) {
    return a.initial.size() < b.initial.size();
  });
  plan.world.fabric = fabric_of(options.network);
  // One replica of each stage lives, where a stage has two or more.
  if (plan.nodes < 2 * (*peers)->stages()) plan.dead_for_good = 0;
  return StagedStorm(**peers, wanted, std::move(plan), config.samples, progress).run(command);
}

}  // namespace rumor::sim
