#include "runtime/sim/storm/training_storm.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/sim/storm/trained_storm.h"
#include "runtime/sim/world/tag_keys.h"
#include "runtime/sim/world/training_peer.h"

namespace rumor::sim {

namespace {

// A node evaluates the shared weights: nothing that it expects of others is in them.
void check_shown(Node& node, const StartEvaluation& evaluation) {
  const float unit = node.trainer().view().unit;
  const std::span<const std::int32_t> weights = node.replica().weights();
  RUMOR_CHECK(evaluation.weights.size() == weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    RUMOR_CHECK(evaluation.weights[i] == static_cast<float>(weights[i]) * unit);
}

class TrainingStorm final : private TrainedStorm, private WorldObserver {
 public:
  TrainingStorm(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                const ClusterOptions& options, const StormRequest& request, StormPlan plan,
                const Progress& progress)
      : TrainedStorm(request, with_maker(std::move(plan), this), config.samples),
        config_(config),
        data_(std::move(data)),
        options_(options),
        progress_(progress),
        record_(config_, data_, plan_.world.model.form.layout, plan_.world.model.initial, world_.hosts(),
                options.curve_points) {
    world_.observe(*this);
  }

  TrainingStormResult run(const std::string& command);

 private:
  static StormPlan with_maker(StormPlan plan, TrainingStorm* self) {
    plan.world.make_peer = [self](const PeerStart& start) { return self->make_peer(start); };
    return plan;
  }
  StartedPeer make_peer(const PeerStart& start);
  TrainingPeer* peer(HostId i) const { return static_cast<TrainingPeer*>(world_.host(i).peer.get()); }
  TrainingRecord::Nodes nodes() const;
  std::uint64_t samples() const override;
  bool complete() const override;
  bool show() override { return record_.watch(nodes(), world_.now(), progress_); }
  void conclude() override;

  // WorldObserver: events that the world reports.
  void started(HostId i) override {
    if (world_.host(i).life > 1) record_.restarted(i);
  }
  void ended(HostId i) override { record_.ended(i, peer(i)->node()); }
  void sealed(HostId i, const gossip::StoredUpdate& update) override {
    record_.published(update, i, world_.now());
  }
  void applied(HostId i, const gossip::UpdateHeader& header, HostId from) override {
    record_.applied(header.key, i, from, world_.now());
  }

  RunConfig config_;
  std::shared_ptr<const models::DataSet> data_;
  const ClusterOptions& options_;
  const Progress& progress_;
  TrainingRecord record_;
  TrainingStormResult all_;
};

StartedPeer TrainingStorm::make_peer(const PeerStart& start) {
  NodeOptions options = node_options(start, plan_.nodes);
  options.known_addresses = start.known;
  options.began = start.began;
  options.start = options_.start;
  options.evaluation_every = 10 * options_.step;
  options.evaluation_rows = 16;  // their result is of no use here; when they come is
  options.checkpoint_every = plan_.checkpoint_every;
  options.disk = start.files;
  auto node = Node::create(config_, data_, std::move(options));
  RUMOR_CHECK(node.ok());  // one like it was made before the run
  RUMOR_CHECK((*node)->open_disk().ok());
  const bool restored = start.checkpoint != nullptr && (*node)->restore(*start.checkpoint).ok();
  const auto evaluate = [this](Node& one, const StartEvaluation& wanted) {
    check_shown(one, wanted);
    return record_.evaluate(one, wanted.rows_max);
  };
  return {std::make_unique<TrainingPeer>(std::move(node).value(), options_.step, start.chance_seed, evaluate),
          restored};
}

TrainingRecord::Nodes TrainingStorm::nodes() const {
  TrainingRecord::Nodes all;
  for (HostId i = 0; i < plan_.nodes; ++i) all.push_back(world_.host(i).up() ? &peer(i)->node() : nullptr);
  return all;
}

std::uint64_t TrainingStorm::samples() const {
  std::uint64_t most = 0;
  for (HostId i = 0; i < plan_.nodes; ++i)
    if (world_.host(i).up()) most = std::max(most, peer(i)->replica()->samples());
  return most;
}

bool TrainingStorm::complete() const {
  for (HostId i = 0; i < plan_.nodes; ++i)
    if (world_.host(i).up() && !peer(i)->node().complete()) return false;
  return true;
}

void TrainingStorm::conclude() {
  const TrainingRecord::Nodes last = nodes();
  if (std::all_of(last.begin(), last.end(), [](const Node* node) { return node == nullptr; })) return;
  all_.result = record_.conclude(last, world_.now());
  all_.result.identical = !stopped_;  // to the sum of what is left, which the checkers have made
}

TrainingStormResult TrainingStorm::run(const std::string& command) {
  all_.report = run_storm(command);
  all_.result.sim_seed = request_.seed;
  all_.result.nodes = plan_.nodes;
  all_.result.trace_hash = world_.trace();
  all_.result.stopped_early = stopped_;
  put_strikes(all_.result);
  return all_;
}

}  // namespace

Duration expected_training(const RunConfig& config, const ClusterOptions& options) {
  const std::uint64_t steps = config.samples / (std::uint64_t{config.batch} * options.nodes) + 1;
  const Duration each = std::max(options.step, from_seconds(config.period_ms * 1e-3));
  return std::max<Duration>(each * static_cast<std::int64_t>(steps), 1s);
}

Result<TrainingStormResult> run_training_storm(const RunConfig& config,
                                               std::shared_ptr<const models::DataSet> data,
                                               const ClusterOptions& options, const StormRequest& request,
                                               const std::string& command, const Progress& progress) {
  StormRequest wanted = request;
  if (wanted.nodes == 0) wanted.nodes = options.nodes;
  ClusterOptions sized = options;
  sized.nodes = wanted.nodes;
  wanted.training = expected_training(config, sized);
  StormPlan plan = draw_plan(wanted);
  for (std::size_t i = 0; i < plan.nodes; ++i) {
    NodeOptions sample;
    sample.keys = std::make_shared<TagKeys>(sample.node);
    sample.start = options.start;
    sample.shard = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(plan.nodes)};
    auto node = Node::create(config, data, std::move(sample));
    if (!node) return node.error();
    if (i > 0) continue;
    const std::span<const std::int32_t> initial = (*node)->replica().weights();
    plan.world.model = {(*node)->form(), {initial.begin(), initial.end()}, config.log_bytes, 0};
  }
  plan.world.fabric = fabric_of(options.network);
  return TrainingStorm(config, std::move(data), options, wanted, std::move(plan), progress).run(command);
}

}  // namespace rumor::sim
