#include "runtime/sim/stages/staged_peers.h"

#include <algorithm>
#include <utility>

#include "gossip/wire/wire.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

// ---- making them ----

StagedPeers::StagedPeers(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                         const ClusterOptions& options)
    : config_(config),
      data_(std::move(data)),
      options_(options),
      books_(config.pipeline.stages),
      curve_(config.samples, options.curve_points) {}

Result<std::unique_ptr<StagedPeers>> StagedPeers::create(const RunConfig& config,
                                                         std::shared_ptr<const models::DataSet> data,
                                                         const ClusterOptions& options) {
  const std::uint32_t stages = config.pipeline.stages;
  if (options.nodes < stages)
    return Error{Errc::usage, str("pipeline.stages = ", stages, ": ", options.nodes,
                                  " nodes are too few, since each stage needs one; raise --nodes")};
  std::unique_ptr<StagedPeers> peers(new StagedPeers(config, std::move(data), options));
  if (auto placed = peers->place_stages(); !placed) return placed.error();
  if (auto made = peers->try_peers(); !made) return made.error();
  return peers;
}

Result<void> StagedPeers::place_stages() {
  for (std::uint32_t stage = 1; stage <= config_.pipeline.stages; ++stage) {
    auto place = StagePlace::create(config_, *data_, stage);
    if (!place) return place.error();
    places_.push_back(std::move(*place));
  }
  auto bound = staged_bound(config_, *data_, options_);
  if (!bound) return bound.error();
  bound_ = std::move(*bound);
  for (const StagedBound::Stage& stage : bound_.stages) costs_.push_back(stage.costs);
  return {};
}

// One node after another, as it will be made: each shard exists, and all of a stage begin alike.
Result<void> StagedPeers::try_peers() {
  for (HostId i = 0; i < hosts(); ++i) {
    NodeOptions options = options_of({});
    options.keys = std::make_shared<TagKeys>(options.node);
    options.shard = {static_cast<std::uint32_t>(number_of(i)), static_cast<std::uint32_t>(replicas(stage_of(i)))};
    auto trainer = make_trainer(i, options);
    if (!trainer) return trainer.error();
    if (i >= stages()) continue;
    const RunConfig& config = places_[i].config;
    auto node = Node::create(config, std::move(trainer->trainer), std::move(options));
    if (!node) return node.error();
    const std::span<const std::int32_t> initial = (*node)->replica().weights();
    models_.push_back({(*node)->form(), {initial.begin(), initial.end()}, config.log_bytes, 0});
    records_.push_back(std::make_unique<TrainingRecord>(config, data_, (*node)->form().layout, initial,
                                                        replicas(i), options_.curve_points));
  }
  return {};
}

Result<StageTrainer> StagedPeers::make_trainer(HostId i, const NodeOptions& options) const {
  const RunConfig& config = places_[stage_of(i)].config;
  return StageTrainer::create(config, data_, options.shard, sampling_seed(config, options.node));
}

NodeOptions StagedPeers::options_of(const PeerStart& start) const {
  NodeOptions options = node_options(start, hosts());
  const std::size_t stage = stage_of(start.host);
  options.shard = {static_cast<std::uint32_t>(number_of(start.host)), static_cast<std::uint32_t>(replicas(stage))};
  options.pipeline = places_[stage].pipeline;
  options.known_addresses = start.known;
  options.began = start.began;
  options.evaluation_every = Duration{0};
  if (checkpoint_every_ == Duration{0}) return options;
  options.checkpoint_every = checkpoint_every_;
  options.disk = start.files;
  return options;
}

void StagedPeers::watch(ProtocolWorld& world, Duration checkpoint_every) {
  world_ = &world;
  checkpoint_every_ = checkpoint_every;
  world.observe(*this);
}

// The same peers were made once before the run, so nothing is wrong with their options.
StartedPeer StagedPeers::make_peer(const PeerStart& start) {
  NodeOptions options = options_of(start);
  auto made = make_trainer(start.host, options);
  RUMOR_CHECK(made.ok());
  auto node = Node::create(places_[stage_of(start.host)].config, std::move(made->trainer), std::move(options));
  RUMOR_CHECK(node.ok());
  bool restored = false;
  if (checkpoint_every_ > Duration{0}) {
    RUMOR_CHECK((*node)->open_disk().ok());
    restored = start.checkpoint != nullptr && (*node)->restore(*start.checkpoint).ok();
  }
  TrainingPeer::Stage stage = duty(start.host, *made, **node);
  const auto evaluate = [](Node&, const StartEvaluation&) { return models::Evaluation(); };
  auto peer = std::make_unique<TrainingPeer>(std::move(*node), options_.step_of(start.host), start.chance_seed,
                                             evaluate);
  peer->set_stage(std::move(stage));
  return {std::move(peer), restored};
}

void StagedPeers::set_step_factor(HostId i, double factor) {
  std::vector<double> factors;
  for (HostId each = 0; each < hosts(); ++each)
    factors.push_back(to_seconds(options_.step_of(each)) / to_seconds(options_.step));
  factors[i] = factor;
  options_.step_factors = std::move(factors);
}

StagedPeers::Cost StagedPeers::cost_of(HostId i) const {
  const double cost = compute_seconds(config_, costs_, options_, i);
  const Duration forward = std::max(from_seconds(cost / 3), Duration{1});
  return {forward, 2 * forward};
}

TrainingPeer::Stage StagedPeers::duty(HostId i, const StageTrainer& made, Node& node) {
  TrainingPeer::Stage stage;
  stage.make = [this, i, worker = made.worker, &node](const gossip::Work& work) {
    const Cost cost = cost_of(i);
    if (!first_work_) first_work_ = world_->now();
    const std::uint64_t before = worker->forward_passes();
    auto result = worker->make(work, node.trainer().view().values);
    // All peers are honest, so only their numbers can be wrong.
    if (!result)
      failed_ = Error{Errc::not_finite, str("stage ", stage_of(i) + 1, " has numbers that are not finite: ",
                                            result.error().text)};
    Duration takes = cost.forward * static_cast<std::int64_t>(worker->forward_passes() - before);
    if (work.kind == gossip::Work::Kind::backward || work.kind == gossip::Work::Kind::both) takes += cost.backward;
    return std::pair(std::move(result), std::max(takes, Duration{1}));
  };
  stage.begin_step = [this, complete = made.complete](const gossip::MakeStep& collected) {
    *complete = collected;
    last_step_ = world_->now();
  };
  return stage;
}

// ---- watching them ----

Node* StagedPeers::node(HostId i) const {
  const Host& host = world_->host(i);
  return host.up() ? &static_cast<TrainingPeer&>(*host.peer).node() : nullptr;
}

void StagedPeers::started(HostId i) {
  if (world_->host(i).life > 1) record_of(i).restarted(number_of(i));
}

void StagedPeers::ended(HostId i) {
  record_of(i).ended(number_of(i), *node(i));
  add(figures_, node(i)->pipeline()->figures());
}

void StagedPeers::sealed(HostId i, const gossip::StoredUpdate& update) {
  record_of(i).published(update, number_of(i), world_->now());
}

void StagedPeers::applied(HostId i, const gossip::UpdateHeader& header, HostId from) {
  record_of(i).applied(header.key, number_of(i), number_of(from), world_->now());
}

void StagedPeers::asked(HostId, const gossip::Effect& effect) {
  const auto* const send = std::get_if<gossip::Send>(&effect);
  if (send == nullptr) return;
  const std::size_t bytes = send->frame.size();
  all_bytes_ += bytes;
  const auto type = static_cast<gossip::FrameType>(send->frame.head.at(0));
  using Type = gossip::FrameType;
  if (type == Type::activations) activation_bytes_ += bytes;
  if (type == Type::gradients) gradient_bytes_ += bytes;
  if (type == Type::stage || type == Type::credit || type == Type::outcome || type == Type::over)
    control_bytes_ += bytes;
}

void StagedPeers::turned(HostId i) {
  const auto broken = books_.read(stage_of(i), i, world_->host(i).life, *node(i)->pipeline());
  if (broken) world_->violate(broken->invariant, i, broken->text);
}

std::size_t StagedPeers::trained_replicas(std::size_t stage) const {
  const TrainingRecord::Nodes nodes = nodes_of(stage);
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [](const Node* one) {
    return one != nullptr && one->caught_up();
  }));
}

TrainingRecord::Nodes StagedPeers::nodes_of(std::size_t stage) const {
  TrainingRecord::Nodes nodes;
  for (std::size_t i = stage; i < hosts(); i += stages()) nodes.push_back(node(static_cast<HostId>(i)));
  return nodes;
}

bool StagedPeers::complete() const {
  for (HostId i = 0; i < hosts(); ++i)
    if (!world_->host(i).dead_for_good && (node(i) == nullptr || !node(i)->complete())) return false;
  return true;
}

std::uint64_t StagedPeers::samples() const {
  std::uint64_t most = 0;
  for (const Node* one : nodes_of(0))
    if (one != nullptr) most = std::max(most, one->samples());
  return most;
}

std::optional<Error> StagedPeers::failure() const {
  if (failed_) return failed_;
  for (HostId i = 0; i < hosts(); ++i) {
    const Host& host = world_->host(i);
    if (!host.up()) continue;
    const std::string text = host.peer->failure();
    const bool not_finite = static_cast<const TrainingPeer&>(*host.peer).not_finite();
    if (!text.empty()) return Error{not_finite ? Errc::not_finite : Errc::io, str("node ", i, " ", text)};
  }
  return std::nullopt;
}

}  // namespace rumor::sim
