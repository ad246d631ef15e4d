// Honest peers audit each other while links reset, processes die and return empty, somebody joins, the owner takes
// updates back, and a bit flips in a memory. Nobody is accused but whose memory erred.
#include <cstdlib>

#include "gossip/trust/signing.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/sim/cheating_swarm.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(honest_swarms)

namespace {

constexpr std::size_t victim = 1;  // of the owner, or of its memory

// The most states in a row that one peer owed another and did not give. `out`: one that may have been put out, and then
// gives none.
std::uint32_t finish_counting_withheld(sim::Cluster& cluster, std::size_t nodes, const NodeId& out) {
  std::uint32_t most = 0;
  for (const TimePoint end = cluster.now() + 900s; !cluster.all_complete() && cluster.now() < end;) {
    cluster.run_until(cluster.now() + 500ms);
    for (std::size_t i = 0; i < nodes; ++i) {
      if (cluster.node(i) == nullptr) continue;
      for (const auto& [peer, counts] : cluster.node(i)->audits())
        if (peer != out) most = std::max(most, cluster.node(i)->withheld_in_a_row(peer));
    }
  }
  test::finish(cluster, 1s);
  return most;
}

struct HonestSwarm {
  RunConfig config = test::audited_run(6000, 0.3);
  sim::ClusterOptions options;
  NodeId owner, flipped = {}, out = {};
  bool memory_errs, somebody_joins, owner_revokes;
  std::unique_ptr<sim::Cluster> cluster;

  explicit HonestSwarm(std::uint64_t seed)
      : options(test::lan(3 + seed % 3, seed)),
        memory_errs(seed % 3 == 1),
        somebody_joins(seed % 4 == 2),
        owner_revokes(seed % 5 == 3) {
    owner.bytes.fill(0x77);
    options.light_faults = true;
    options.owner = owner;
    if (seed % 2 == 0) options.network = sim::NetworkModel::preset("home").value();
    if (memory_errs)
      options.trainer = [this, seed](std::size_t node, const NodeOptions& made) { return trainer(node, made, seed); };
    cluster = test::make_cluster(config, options);
    if (memory_errs || owner_revokes) out = cluster->node(victim)->self();
  }

  // One entry of one update of the first process on the victim's machine has the wrong sign.
  Result<std::unique_ptr<Trainer>> trainer(std::size_t node, const NodeOptions& made, std::uint64_t seed) {
    auto honest = ModelTrainer::create(config, test::small_data(), made.shard, sampling_seed(config, made.node));
    if (!honest) return honest.error();
    if (node != victim || !flipped.is_zero()) return std::unique_ptr<Trainer>(std::move(honest).value());
    flipped = made.node;
    const auto errs = [left = 20 + seed % 50](ModelTrainer& trainer, const StepPlan& plan) mutable {
      StepResult result = trainer.step(plan);
      if (result.held || --left != 0) return result;
      result.update.negative[0] ^= 1;
      test::encode_again(trainer, result);
      return result;
    };
    return std::unique_ptr<Trainer>(std::make_unique<test::Cheat>(std::move(honest).value(), errs));
  }

  // All of the victim's updates, or a range of one stream, on the owner's word.
  void revoke(std::uint64_t seed) {
    if (cluster->node(victim) == nullptr || cluster->node(0) == nullptr) return;
    const Node& node = *cluster->node(victim);
    gossip::Revocation what{.node = node.self(), .stream = {}, .range = {1, gossip::seq_max}};
    if (seed % 2 == 0) what.stream = node.stream(), what.range = {5, 12};
    what.signature = sim::TagKeys(owner).sign(gossip::revoke_message(node.run(), what));
    const auto done = cluster->revoke(0, what);
    const bool too_late = !done.ok() && done.error().code == Errc::limit;  // node 0 has come back without them
    BOOST_TEST((done.ok() || too_late), "seed " << seed);
  }

  // The most states in a row that one peer owed another and did not give.
  std::uint32_t finish(std::uint64_t seed) {
    if (somebody_joins) {
      cluster->run_until(cluster->now() + 100ms);
      if (cluster->node(2) != nullptr) {
        cluster->kill(2);
        cluster->run_until(cluster->now() + 2s);
        cluster->restart(2);
      }
    }
    if (owner_revokes) {
      cluster->run_until(cluster->now() + 3s);
      revoke(seed);
    }
    return finish_counting_withheld(*cluster, options.nodes, out);
  }

  void check(std::uint64_t seed) const {
    for (std::size_t i = 0; i < options.nodes; ++i) {
      if (cluster->node(i) == nullptr) continue;
      for (const gossip::Revocation& one : cluster->node(i)->replica().revocations())
        if (one.kind != gossip::Revocation::Kind::owner) BOOST_TEST((one.node == flipped), "seed " << seed);
      for (const auto& [node, counts] : cluster->node(i)->audits())
        BOOST_TEST((counts.differ == 0u || node == flipped), "seed " << seed);
      cluster->node(i)->check_invariants();
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(accuse_nobody) {
  const char* given = std::getenv("RUMOR_AUDIT_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 40;
  AuditCounts all;
  std::uint64_t named = 0, found = 0, flips = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    HonestSwarm swarm(seed);
    named += swarm.finish(seed) >= WithheldStates::warned_at ? 1 : 0;  // who restarts again and again may be
    swarm.check(seed);
    const AuditCounts counts = test::counts_of(*swarm.cluster, swarm.options.nodes);
    all.agreed += counts.agreed;
    all.cannot_tell += counts.cannot_tell;
    flips += swarm.memory_errs ? 1 : 0;
    found += counts.differ > 0 ? 1 : 0;
  }
  BOOST_TEST_MESSAGE(seeds << " seeds: " << all.agreed << " segments agree, " << all.cannot_tell
                           << " cannot be told; of " << flips << " memory errors " << found
                           << " were found, and nobody else was accused; in " << named
                           << " a peer was named that had not withheld anything");
  BOOST_TEST(named <= seeds / 1000);
  BOOST_TEST(all.agreed > 2 * all.cannot_tell);
  BOOST_TEST(found > 0u);
}

BOOST_AUTO_TEST_SUITE_END()
