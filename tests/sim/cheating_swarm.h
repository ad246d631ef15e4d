// Four peers that audit each other, of which one or two cheat: in steps of 100 ms, so that an accusation waits for some
// hundred steps.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/wire/wire.h"
#include "tests/sim/cheat.h"
#include "tests/sim/support.h"

namespace rumor::test {

inline RunConfig audited_run(std::uint64_t samples, double share = 0.05) {
  RunConfig config = small_run(samples);
  config.records = true;
  config.segment = 8;
  config.audit_share = share;
  return config;
}

inline StepResult honest_step(ModelTrainer& trainer, const StepPlan& plan) { return trainer.step(plan); }

// Honest but for steps from number `first` on: 9 is where the second segment begins.
inline Cheat::Step after_a_segment(Cheat::Step cheat, int first = 9) {
  return [cheat = std::move(cheat), first, steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    return ++steps < first ? trainer.step(plan) : cheat(trainer, plan);
  };
}

inline void encode_again(const ModelTrainer& trainer, StepResult& result) {
  result.payload = compress::encode(trainer.layout(), result.update);
}

// The segments that the nodes have made again, about whomever.
inline AuditCounts counts_of(const sim::Cluster& cluster, std::size_t nodes) {
  AuditCounts all;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (cluster.node(i) == nullptr) continue;
    for (const auto& [node, counts] : cluster.node(i)->audits()) {
      all.agreed += counts.agreed;
      all.differ += counts.differ;
      all.cannot_tell += counts.cannot_tell;
    }
  }
  return all;
}

// How the cheats of a swarm are.
struct CheatKind {
  Cheat::Lie lie = {};             // about the state
  models::Shard rows = {2, 4};     // of node 2
  bool ignores_charges = true;
  int data_for = 1;  // of one that ignores charges: how often it has data (Cheat)
  std::vector<std::size_t> nodes = {2};  // which nodes cheat
  std::function<bool(sim::HostId, sim::HostId, const gossip::OutFrame&)> loses = {};  // frames
  bool end_with_the_run = false;  // all nodes do; else they serve on
};

struct CheatingSwarm {
  static constexpr std::size_t nodes = 4;
  RunConfig config;
  CheatKind kind;
  std::map<std::size_t, NodeId> ids;  // of all nodes
  std::unique_ptr<sim::Cluster> cluster;
  std::unique_ptr<ModelTrainer> judge;    // evaluates weights
  compress::SparseUpdate of_another = {};  // the last update of node 0

  CheatingSwarm(RunConfig the_config, Cheat::Step step, CheatKind the_kind = {}, std::uint64_t seed = 1)
      : config(std::move(the_config)), kind(std::move(the_kind)) {
    sim::ClusterOptions options = lan(nodes, seed);
    options.step = 100ms;
    options.loses = kind.loses;
    if (kind.end_with_the_run) options.until_samples = config.samples;
    options.trainer = [=, this](std::size_t node, const NodeOptions& made) { return trainer(node, made, step); };
    cluster = make_cluster(config, options);
    judge = std::move(ModelTrainer::create(config, small_data(), {0, nodes}, 1)).value();
  }

  Result<std::unique_ptr<Trainer>> trainer(std::size_t node, const NodeOptions& made, const Cheat::Step& step) {
    auto honest = ModelTrainer::create(config, small_data(), node == 2 ? kind.rows : made.shard,
                                       sampling_seed(config, made.node));
    if (!honest) return honest.error();
    ids[node] = made.node;
    if (cheats_at(node)) {
      auto cheat = std::make_unique<Cheat>(std::move(honest).value(), step, kind.lie);
      if (kind.ignores_charges) cheat->have_data_for(kind.data_for);
      return std::unique_ptr<Trainer>(std::move(cheat));
    }
    if (node != 0) return std::unique_ptr<Trainer>(std::move(honest).value());
    const Cheat::Step watched = [this](ModelTrainer& trainer, const StepPlan& plan) {
      StepResult result = trainer.step(plan);
      of_another = result.update;
      return result;
    };
    return std::unique_ptr<Trainer>(std::make_unique<Cheat>(std::move(honest).value(), watched));
  }

  bool cheats_at(std::size_t node) const { return std::count(kind.nodes.begin(), kind.nodes.end(), node) > 0; }
  NodeId cheat() const { return ids.at(2); }
  bool is_cheat(const NodeId& id) const {
    return std::any_of(kind.nodes.begin(), kind.nodes.end(), [&](std::size_t node) { return ids.at(node) == id; });
  }
  // The segments of a peer that honest peers have made again.
  AuditCounts found_of(const NodeId& id) const {
    AuditCounts found;
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto& counts = cluster->node(i)->audits();
      const auto at = counts.find(id);
      if (cheats_at(i) || at == counts.end()) continue;
      found.agreed += at->second.agreed;
      found.differ += at->second.differ;
      found.cannot_tell += at->second.cannot_tell;
    }
    return found;
  }
  // Updates of the cheat on node 2 until somebody finds a false one; 0: nobody did.
  std::uint64_t run_until_found(Duration limit) {
    for (const TimePoint end = cluster->now() + limit; cluster->now() < end; cluster->run_until(cluster->now() + 100ms))
      if (found_of(cheat()).differ > 0) return cluster->node(2)->figures().own_updates();
    return 0;
  }
  // The revocations of an honest node, which all of them have.
  std::set<gossip::Revocation> revocations() const {
    for (std::size_t i = 1; i < nodes; ++i)
      if (!cheats_at(i)) BOOST_TEST((cluster->node(i)->replica().digest() == cluster->node(0)->replica().digest()));
    return cluster->node(0)->replica().revocations();
  }
  // On the test set, at the weights of node 0.
  double loss() const {
    const auto weights = cluster->node(0)->replica().weights();
    return judge->evaluate(models::to_floats(weights, config.grid_bits), UINT32_MAX).loss;
  }
};

inline std::uint64_t updates_of(const Node& node, const NodeId& origin) {
  const ContributionTable table = node.status({}).contributions;
  for (const Contribution& one : table.nodes)
    if (one.node == origin) return one.updates;
  return 0;
}

// All honest peers must put out the cheats, and nobody else. The run goes on to its end.
inline void check_that_it_is_put_out(const std::string& name, CheatingSwarm& swarm) {
  const std::uint64_t found = swarm.run_until_found(150s);
  BOOST_TEST(found > 0u, name);
  while (swarm.cluster->node(0)->replica().revocations().empty() && !swarm.cluster->all_complete())
    swarm.cluster->run_until(swarm.cluster->now() + 10ms);
  const double without = swarm.loss();
  finish(*swarm.cluster, 900s);
  const std::uint64_t made = swarm.cluster->node(2)->figures().own_updates();
  const std::uint64_t left = updates_of(*swarm.cluster->node(0), swarm.cheat());
  BOOST_TEST_MESSAGE(name << ": found after " << found << " updates, put out after " << made << ", of which " << left
                          << " are left; loss " << without << " at that moment, " << swarm.loss() << " in the end");
  const std::set<gossip::Revocation> revocations = swarm.revocations();
  std::set<NodeId> out;
  for (const gossip::Revocation& one : revocations) {  // auditors may prove several
    BOOST_TEST(swarm.is_cheat(one.node));
    BOOST_TEST((one.kind == gossip::Revocation::Kind::proven));
    if (one.node == swarm.cheat()) BOOST_TEST(left < one.false_update.seq);
    out.insert(one.node);
  }
  BOOST_TEST(out.size() == swarm.kind.nodes.size(), name);
  for (std::size_t i = 0; i < CheatingSwarm::nodes; ++i)
    for (const auto& [node, counts] : swarm.cluster->node(i)->audits())
      if (!swarm.cheats_at(i)) BOOST_TEST((swarm.is_cheat(node) || counts.differ == 0u));
}

}  // namespace rumor::test
