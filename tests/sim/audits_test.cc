// Peers that audit each other while they train: honest ones agree, cheats are put out by proofs that all others check.
#include <array>
#include <set>

#include "tests/sim/cheat.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(audits_by_peers)

namespace {

RunConfig audited(std::uint64_t samples, double share = 0.05) {
  RunConfig config = test::small_run(samples);
  config.records = true;
  config.segment = 8;
  config.audit_share = share;
  return config;
}

AuditCounts counts_of(const sim::Cluster& cluster, std::size_t nodes) {
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

// Node 2 of 4 is the cheat. One step takes 100 ms, so that an accusation waits for some hundred steps.
struct Swarm {
  RunConfig config;
  bool ignores_charges = true;
  NodeId cheat;
  std::unique_ptr<sim::Cluster> cluster;
  compress::SparseUpdate of_another;  // the last update of node 0

  Swarm(RunConfig the_config, test::Cheat::Step step, test::Cheat::Lie lie = {}, models::Shard rows = {2, 4},
        std::uint64_t seed = 1, bool hostile = true)
      : config(std::move(the_config)), ignores_charges(hostile) {
    sim::ClusterOptions options = test::lan(4, seed);
    options.step = 100ms;
    options.trainer = [=, this](std::size_t node, const NodeOptions& made) -> Result<std::unique_ptr<Trainer>> {
      auto honest = ModelTrainer::create(config, test::small_data(), node == 2 ? rows : made.shard,
                                         sampling_seed(config, made.node));
      if (!honest) return honest.error();
      if (node == 2) cheat = made.node;
      const test::Cheat::Step watched = [this](ModelTrainer& trainer, const StepPlan& plan) {
        StepResult result = trainer.step(plan);
        of_another = result.update;
        return result;
      };
      if (node != 0 && node != 2) return std::unique_ptr<Trainer>(std::move(honest).value());
      auto made_one = std::make_unique<test::Cheat>(std::move(honest).value(), node == 2 ? step : watched,
                                                    node == 2 ? lie : test::Cheat::Lie());
      if (node == 2 && ignores_charges) made_one->ignore_charges();
      return std::unique_ptr<Trainer>(std::move(made_one));
    };
    cluster = test::make_cluster(config, options);
  }

  std::uint64_t found_by() const {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < 4; ++i)
      if (const auto at = cluster->node(i)->audits().find(cheat); at != cluster->node(i)->audits().end())
        found += at->second.differ > 0 ? 1 : 0;
    return found;
  }
  // Updates of the cheat until somebody finds a false one; 0: nobody did.
  std::uint64_t run_until_found(Duration limit) {
    for (const TimePoint end = cluster->now() + limit; cluster->now() < end; cluster->run_until(cluster->now() + 100ms))
      if (found_by() > 0) return cluster->node(2)->figures().own_updates();
    return 0;
  }
  // The revocations of an honest node, which all of them have.
  std::set<gossip::Revocation> revocations() const {
    for (const std::size_t i : {1, 3})
      BOOST_TEST((cluster->node(i)->replica().digest() == cluster->node(0)->replica().digest()));
    return cluster->node(0)->replica().revocations();
  }
};

std::uint64_t updates_of(const Node& node, const NodeId& origin) {
  const ContributionTable table = node.status({}).contributions;
  for (const Contribution& one : table.nodes)
    if (one.node == origin) return one.updates;
  return 0;
}

// Honest in its first segment, then a cheat in each step. All others must put it out, and nobody else.
void check_that_it_is_put_out(const std::string& name, Swarm& swarm) {
  const std::uint64_t found = swarm.run_until_found(150s);
  BOOST_TEST(found > 0u, name);
  test::finish(*swarm.cluster, 900s);
  const std::uint64_t made = swarm.cluster->node(2)->figures().own_updates();
  const std::uint64_t left = updates_of(*swarm.cluster->node(0), swarm.cheat);
  BOOST_TEST_MESSAGE(name << ": found after " << found << " updates, put out after " << made << ", of which " << left
                          << " are left");
  const std::set<gossip::Revocation> revocations = swarm.revocations();
  BOOST_TEST(!revocations.empty(), name);
  for (const gossip::Revocation& one : revocations) {  // auditors may prove several
    BOOST_TEST((one.node == swarm.cheat));
    BOOST_TEST((one.kind == gossip::Revocation::Kind::proven));
    BOOST_TEST(left < one.false_update.seq);
  }
  for (const std::size_t i : {0, 1, 3})
    for (const auto& [node, counts] : swarm.cluster->node(i)->audits())
      BOOST_TEST((node == swarm.cheat || counts.differ == 0u));
}

// Honest but for steps from number 9 on, where the second segment begins.
test::Cheat::Step after_a_segment(test::Cheat::Step cheat, int first = 9) {
  return [cheat = std::move(cheat), first, steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    return ++steps < first ? trainer.step(plan) : cheat(trainer, plan);
  };
}

StepResult honest(ModelTrainer& trainer, const StepPlan& plan) { return trainer.step(plan); }

void encode_again(const ModelTrainer& trainer, StepResult& result) {
  result.payload = compress::encode(trainer.layout(), result.update);
}

}  // namespace

BOOST_AUTO_TEST_CASE(honest_peers_spend_their_share_and_agree) {
  const RunConfig config = audited(60'000);
  const auto cluster = test::make_cluster(config, test::lan(4));
  test::finish(*cluster, 600s);
  test::require_all_equal(*cluster, 4);
  const AuditCounts counts = counts_of(*cluster, 4);
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < 4; ++i) steps += cluster->node(i)->figures().steps;
  const double share = static_cast<double>(counts.agreed) * config.segment / static_cast<double>(steps);
  BOOST_TEST_MESSAGE(counts.agreed << " segments agree, " << counts.cannot_tell << " cannot be told, share " << share);
  BOOST_TEST(counts.differ == 0u);
  BOOST_TEST(counts.cannot_tell <= counts.agreed / 10);
  BOOST_TEST(share > 0.025);
  BOOST_TEST(share < 0.085);
}

BOOST_AUTO_TEST_CASE(random_updates) {
  Swarm swarm(audited(120'000), after_a_segment([prng = Prng(7)](ModelTrainer& trainer, const StepPlan& plan) mutable {
    StepResult result = trainer.step(plan);
    std::set<std::uint32_t> positions;
    while (positions.size() < result.update.index.size())
      positions.insert(static_cast<std::uint32_t>(prng.below(trainer.layout().params())));
    result.update.index.assign(positions.begin(), positions.end());
    encode_again(trainer, result);
    return result;
  }));
  check_that_it_is_put_out("random updates", swarm);
}

BOOST_AUTO_TEST_CASE(honest_updates_that_move_a_tenth_too_far) {
  Swarm swarm(audited(120'000), after_a_segment([](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    result.update.step += result.update.step / 10;
    encode_again(trainer, result);
    return result;
  }));
  check_that_it_is_put_out("scaled by 1.1", swarm);
}

// At 5 % a cheat is found after 20 segments in the mean, and 99 of 100 after 90.
BOOST_AUTO_TEST_CASE(a_twentieth_of_the_compute_finds_a_twentieth_of_the_segments) {
  const char* given = std::getenv("RUMOR_AUDIT_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 4;
  std::uint64_t segments = 0;
  std::multiset<std::uint64_t> until_found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto cheat = after_a_segment([](ModelTrainer& trainer, StepPlan plan) {
      plan.rate *= 1.1;
      return trainer.step(plan);
    }, 801);
    Swarm swarm(audited(1'000'000), cheat, {}, {2, 4}, seed);
    const std::uint64_t found = swarm.run_until_found(1000s);
    BOOST_REQUIRE(found > 800u);
    segments += (found - 800) / swarm.config.segment;
    until_found.insert((found - 800) / swarm.config.segment);
  }
  BOOST_TEST_MESSAGE(seeds << " cheats: found after " << static_cast<double>(segments) / static_cast<double>(seeds)
                           << " segments in the mean, half of them after "
                           << *std::next(until_found.begin(), static_cast<std::ptrdiff_t>(seeds / 2)) << ", all after "
                           << *until_found.rbegin());
  BOOST_TEST(segments < 60 * seeds);
}

BOOST_AUTO_TEST_CASE(rows_of_another_peer) {
  Swarm swarm(audited(120'000), honest, {}, {1, 4});
  check_that_it_is_put_out("other rows", swarm);
}

BOOST_AUTO_TEST_CASE(every_other_step_is_skipped) {
  Swarm swarm(audited(120'000), after_a_segment([skip = false](ModelTrainer& trainer, StepPlan plan) mutable {
    const StepResult as_told{.samples = trainer.built().samples()};
    plan.flush = skip = !skip;
    StepResult result = trainer.step(plan);
    result.samples = as_told.samples;
    return result;
  }));
  check_that_it_is_put_out("every other step skipped", swarm);
}

BOOST_AUTO_TEST_CASE(updates_of_another_peer_under_its_own_name) {
  Swarm* self = nullptr;
  Swarm swarm(audited(120'000), after_a_segment([&self](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    result.update = self->of_another;
    encode_again(trainer, result);
    return result;
  }));
  self = &swarm;
  check_that_it_is_put_out("copies", swarm);
}

BOOST_AUTO_TEST_CASE(a_root_of_another_state) {
  Swarm swarm(audited(120'000), honest, [lies = 0](Bytes& state) mutable { state[3] ^= ++lies > 1 ? 0x80 : 0; });
  check_that_it_is_put_out("lies about the root", swarm);
}

// Residual and moments that no trainer can have: not finite, or so large that the next step overflows.
BOOST_AUTO_TEST_CASE(states_of_no_numbers) {
  RunConfig config = audited(120'000);
  config.optimizer.kind = "adam";
  using Float = std::array<std::uint8_t, 4>;
  for (const Float value : {Float{0, 0, 0xc0, 0x7f}, Float{0xff, 0xff, 0x7f, 0x7f}})
    for (const bool residual : {true, false}) {
      const auto lie = [value, residual, lies = 0](Bytes& state) mutable {
        if (++lies > 1) std::copy(value.begin(), value.end(), residual ? state.begin() : state.end() - 4);
      };
      Swarm swarm(config, honest, lie);
      check_that_it_is_put_out(residual ? "no residual" : "no moments", swarm);
    }
}

// Each segment by itself is right, but not one after the other.
BOOST_AUTO_TEST_CASE(another_state_between_two_segments) {
  Swarm swarm(audited(120'000), [steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    if (++steps % 8 != 0 || steps == 8) return trainer.step(plan);
    StepResult result = trainer.step(plan);
    std::vector<float> residual(trainer.residual().begin(), trainer.residual().end());
    for (float& waits : residual) waits *= 1.001f;
    BOOST_TEST(trainer.restore(residual, trainer.optimizer_state()).ok());
    return result;
  });
  check_that_it_is_put_out("another state between segments", swarm);
}

BOOST_AUTO_TEST_CASE(a_memory_error_is_withdrawn_by_its_own_peer) {
  bool found = false;
  for (std::uint64_t seed = 1; seed <= 8 && !found; ++seed) {
    const auto one_error = [steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
      StepResult result = trainer.step(plan);
      if (++steps != 60) return result;
      result.update.negative[0] ^= 1;
      encode_again(trainer, result);
      return result;
    };
    Swarm swarm(audited(60'000, 0.5), one_error, {}, {2, 4}, seed, false);
    if (swarm.run_until_found(40s) == 0) continue;  // its segment was not drawn
    found = true;
    test::finish(*swarm.cluster, 900s);
    const std::set<gossip::Revocation> revocations = swarm.revocations();
    BOOST_REQUIRE(revocations.size() == 1u);
    BOOST_TEST((revocations.begin()->kind == gossip::Revocation::Kind::withdrawn));
    BOOST_TEST(revocations.begin()->range.first == 60u);
    BOOST_TEST(updates_of(*swarm.cluster->node(0), swarm.cheat) == 59u);
  }
  BOOST_TEST(found);
}

// Links reset, processes die and return empty, and one is cut off for a while.
BOOST_AUTO_TEST_CASE(honest_swarms_with_faults_accuse_nobody) {
  const char* given = std::getenv("RUMOR_AUDIT_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 10;
  AuditCounts all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    sim::ClusterOptions options = test::lan(3 + seed % 3, seed);
    options.light_faults = true;
    if (seed % 2 == 0) options.network = sim::NetworkModel::preset("home").value();
    const auto cluster = test::make_cluster(audited(6000, 0.3), options);
    test::finish(*cluster, 900s);
    const AuditCounts counts = counts_of(*cluster, options.nodes);
    all.agreed += counts.agreed;
    all.cannot_tell += counts.cannot_tell;
    all.differ += counts.differ;
    for (std::size_t i = 0; i < options.nodes; ++i) {
      BOOST_TEST(cluster->node(i)->replica().revocations().empty(), "seed " << seed);
      cluster->node(i)->check_invariants();
    }
  }
  BOOST_TEST_MESSAGE(seeds << " seeds: " << all.agreed << " segments agree, " << all.cannot_tell
                           << " cannot be told, " << all.differ << " differ");
  BOOST_TEST(all.differ == 0u);
  BOOST_TEST(all.agreed > 2 * all.cannot_tell);
}

// Its states are gone before anybody's wish for them arrives.
BOOST_AUTO_TEST_CASE(without_its_state_a_segment_cannot_be_told) {
  RunConfig config = audited(20'000);
  config.segment = 1;
  sim::ClusterOptions options = test::lan(4);
  options.network = sim::NetworkModel::preset("wan").value();
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster, 600s);
  const AuditCounts counts = counts_of(*cluster, 4);
  BOOST_TEST(counts.cannot_tell > 0u);
  BOOST_TEST(counts.differ == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
