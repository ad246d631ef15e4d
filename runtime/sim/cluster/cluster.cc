// The nodes of a training run: how they are made, when they start, what a scenario does to them. The run as a whole is
// in cluster_run.cc.
#include "runtime/sim/cluster/cluster.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::sim {

namespace {

// Processes do not start at the same instant.
constexpr std::int64_t start_spread_us = 20'000;

}  // namespace

Cluster::Cluster(const RunConfig& config, std::shared_ptr<const models::DataSet> data, ClusterOptions options)
    : config_(config),
      data_(std::move(data)),
      options_(std::move(options)),
      world_(world_options()),
      faults_(world_, options_.nodes, options_.seed, run_under_faults()),
      chance_(Prng::named(options_.seed, "cluster")) {
  world_.observe(*this);
}

WorldOptions Cluster::world_options() {
  WorldOptions world;
  world.hosts = options_.nodes;
  world.seed = options_.seed;
  world.fabric = fabric_of(options_.network);
  world.fabric.shared_downlink = true;
  world.make_peer = [this](const PeerStart& start) { return make_peer(start); };
  world.invariants_every = UINT32_MAX;
  // Refused at once, and not timed out: the two sides find each other soon after the partition.
  world.refuses = [this](HostId from, HostId to) { return faults_.parts(from, to); };
  world.loses = options_.loses;
  return world;
}

InjectedFaults::Run Cluster::run_under_faults() {
  return {.is_over = [this] { return all_complete(); },
          // The closing tenth.
          .is_ending =
              [this] { return up(0) && node(0)->replica().samples() * 10 > config_.samples * 9; },
          // Never below two alive.
          .may_die =
              [this](HostId, bool) {
                std::size_t alive = 0;
                for (std::size_t i = 0; i < options_.nodes; ++i) alive += up(i) ? 1 : 0;
                return alive > 2;
              },
          .starts_again = [this](HostId i, bool) { restart(i); }};
}

Result<std::unique_ptr<Cluster>> Cluster::create(const RunConfig& config,
                                                 std::shared_ptr<const models::DataSet> data,
                                                 ClusterOptions options) {
  std::unique_ptr<Cluster> cluster(new Cluster(config, std::move(data), std::move(options)));
  const std::size_t nodes = cluster->options_.nodes;
  for (std::size_t i = 0; i < nodes; ++i) {
    for (HostId seed = 0; seed < std::min<std::size_t>(3, nodes); ++seed)
      cluster->world_.host(static_cast<HostId>(i)).seeds.push_back(ProtocolWorld::address_of(seed));
    cluster->start_node(i);
    if (cluster->refused_) return *cluster->refused_;
  }
  const Node& first = cluster->peer(0).node();
  const gossip::BacklogMarks marks = first.protocol().backlog_marks();
  cluster->world_.fabric().set_backlog_marks(marks.high, marks.low);
  cluster->record_.emplace(cluster->config_, cluster->data_, first.form().layout, first.replica().weights(), nodes,
                           cluster->options_.curve_points);
  cluster->faults_.schedule(cluster->options_.light_faults, cluster->options_.planned_faults);
  return cluster;
}

void Cluster::start_node(std::size_t i) {
  const auto host = static_cast<HostId>(i);
  world_.host(host).refuses = false;
  world_.start(host, DiskFault::none, Duration(chance_.between(0, start_spread_us)));
}

Result<std::unique_ptr<Node>> Cluster::create_node(std::size_t i, NodeOptions options) {
  if (!options_.trainer) return Node::create(config_, data_, std::move(options));
  auto trainer = options_.trainer(i, options);
  if (!trainer) return trainer.error();
  return Node::create(config_, std::move(trainer).value(), std::move(options));
}

// Without a disk: what a node has lost it gets from the others.
StartedPeer Cluster::make_peer(const PeerStart& start) {
  NodeOptions options = node_options(start, options_.nodes);
  options.start = options_.start;
  options.evaluation_every = Duration{0};
  if (options_.until_samples) options.until_samples = options_.until_samples;
  options.rule.owner = options_.owner;
  auto node = create_node(start.host, std::move(options));
  if (!node) {
    refused_ = node.error();
    return {};
  }
  // Where each node has a model of its own, the record evaluates the models when it needs them.
  const auto evaluate = [this](Node& one, const StartEvaluation&) {
    return config_.has_own_models() ? models::Evaluation() : record_->evaluate(one);
  };
  const Duration step = options_.step_of(start.host);
  return {std::make_unique<TrainingPeer>(std::move(node).value(), step, start.chance_seed, evaluate)};
}

void Cluster::kill(std::size_t i) {
  RUMOR_CHECK(up(i));
  world_.kill(static_cast<HostId>(i), false);
}

void Cluster::restart(std::size_t i) {
  record_->restarted(i);
  start_node(i);
  RUMOR_CHECK(up(i));  // it started once with the same options
}

Result<void> Cluster::revoke(std::size_t i, const gossip::Revocation& revocation) {
  const auto host = static_cast<HostId>(i);
  Result<void> done;
  world_.turn(host, host, [&](gossip::Outbox& out) { done = peer(i).revoke(revocation, now(), out); });
  return done;
}

void Cluster::send(std::size_t i, std::size_t to, const Bytes& frame) {
  const Fabric& fabric = world_.fabric();
  const std::size_t connections = fabric.connections();
  for (ConnectionId c = 0; c < connections; ++c)
    for (const int side : {0, 1})
      if (fabric.is_open({c, side}) && fabric.host({c, side}) == i && fabric.host({c, 1 - side}) == to)
        world_.stranger_sends({c, side}, frame);
}

}  // namespace rumor::sim
