// Audits of simulated runs: what honest peers made is made again to the last byte, and a cheat is found.
#include "models/data/data_hash.h"
#include "runtime/audit/run_audit.h"
#include "tests/sim/cheat.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(audits)

namespace {

RunConfig recorded(std::uint64_t samples = 4000) {
  RunConfig config = test::small_run(samples);
  config.records = true;
  return config;
}

struct Audited {
  std::vector<audit::StreamFindings> streams;
  std::uint64_t updates = 0, agree = 0, differ = 0, cannot_tell = 0;
};

// Every update in the log of node 0, made again.
Audited audit_of(const RunConfig& config, const sim::Cluster& cluster) {
  const Node& node = *cluster.node(0);
  auto base = audit::without_log(node.form(), node.replica().state(), node.log());
  BOOST_REQUIRE(base.ok());
  const Hash256 data_hash = models::training_data_hash(*test::small_data());
  const audit::AuditedRun run{config, node.form(), test::small_data(), data_hash, node.log(), std::move(base).value()};
  audit::RunAudit all(run);
  Audited audited{all.audit({}, [](const auto&, const auto&) { return true; }), all.updates()};
  for (const audit::StreamFindings& stream : audited.streams) {
    if (stream.first_doubt > 0)
      BOOST_TEST_MESSAGE(stream.stream.brief() << " update " << stream.first_doubt << ": " << stream.why);
    audited.agree += stream.agree;
    audited.differ += stream.differ;
    audited.cannot_tell += stream.cannot_tell;
  }
  return audited;
}

void check_that_all_agree(const RunConfig& config, sim::ClusterOptions options) {
  options.network = sim::NetworkModel::preset("wan").value();  // several updates in flight
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.streams.size() == options.nodes);
  BOOST_TEST(audited.updates > options.nodes);
  BOOST_TEST(audited.agree == audited.updates);
}

// Node 2 of 4 cheats, from update `first` on, which is where an audit must find it and nobody else.
void check_that_the_cheat_is_found(std::uint64_t first, const test::Cheat::Step& cheat, models::Shard rows = {2, 4},
                                   const RunConfig& config = recorded()) {
  sim::ClusterOptions options = test::lan(4);
  NodeId id;
  options.trainer = [&](std::size_t node, const NodeOptions& made) -> Result<std::unique_ptr<Trainer>> {
    auto honest = ModelTrainer::create(config, test::small_data(), node == 2 ? rows : made.shard,
                                       sampling_seed(config, made.node));
    if (!honest) return honest.error();
    if (node != 2) return std::unique_ptr<Trainer>(std::move(honest).value());
    id = made.node;
    return std::unique_ptr<Trainer>(std::make_unique<test::Cheat>(std::move(honest).value(), cheat));
  };
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.differ == 1u);  // the first; those behind it cannot be told
  for (const audit::StreamFindings& stream : audited.streams) {
    BOOST_TEST(stream.first_doubt == (stream.origin == id ? first : 0));
    BOOST_TEST(stream.agree == (stream.origin == id ? first - 1 : stream.updates));
  }
}

StepResult honest_step(ModelTrainer& trainer, const StepPlan& plan) { return trainer.step(plan); }

// Honest but for steps from number 10 on.
test::Cheat::Step from_the_tenth(test::Cheat::Step cheat) {
  return [cheat = std::move(cheat), steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    return ++steps < 10 ? trainer.step(plan) : cheat(trainer, plan);
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(honest_updates_are_made_again_to_the_last_byte) {
  check_that_all_agree(recorded(), test::lan(4));
}

BOOST_AUTO_TEST_CASE(rounds_with_muon_and_entries_of_the_mean) {
  RunConfig config = recorded();
  config.model.hidden = {8, 8};
  config.optimizer.kind = "muon";
  config.rate = 0.02;
  config.round_rules.local_steps = 0;
  config.emit = compress::Emit::mean;
  config.scope = compress::Scope::tensor;
  config.adam_scaling = "none";
  check_that_all_agree(config, test::lan(3));
}

// Peers come one after another, so their mini-batches shrink from eight rows to two.
BOOST_AUTO_TEST_CASE(mini_batches_that_follow_the_number_of_peers) {
  RunConfig config = recorded();
  config.batch = 8;
  config.global_batch = 12;
  config.round_rules.local_steps = 3;
  check_that_all_agree(config, test::lan(5));
}

BOOST_AUTO_TEST_CASE(pictures_from_low_to_full_resolution) {
  check_that_all_agree(test::in_sizes(recorded()), test::lan(4));
}

BOOST_AUTO_TEST_CASE(adam_with_clipping_another_in_flight_weight_and_a_flush) {
  RunConfig config = recorded();
  config.in_flight_weight = 0.375;
  config.optimizer.kind = "adam";
  config.optimizer.clip = 0.5;
  config.rate = 0.002;
  config.flush_bits = 6;
  check_that_all_agree(config, test::lan(3));
}

// Each turn begins without a residual, and ends with a flush. One peer, which makes no flush, counts its turns.
BOOST_AUTO_TEST_CASE(peers_that_train_in_turn) {
  RunConfig config = recorded(8000);
  config.turns = {.trainers = 2, .turn_updates = 16};
  config.residual_decay = 0.5;
  std::uint64_t dropped = 0;
  sim::ClusterOptions options = test::lan(4);
  options.trainer = [&](std::size_t node, const NodeOptions& made) -> Result<std::unique_ptr<Trainer>> {
    auto honest = ModelTrainer::create(config, test::small_data(), made.shard, sampling_seed(config, made.node));
    if (!honest) return honest.error();
    if (node != 2) return std::unique_ptr<Trainer>(std::move(honest).value());
    const auto counts = [&dropped](ModelTrainer& trainer, const StepPlan& plan) {
      dropped += plan.drop_residual ? 1 : 0;
      return trainer.step(plan);
    };
    return std::unique_ptr<Trainer>(std::make_unique<test::Cheat>(std::move(honest).value(), counts));
  };
  check_that_all_agree(config, options);
  BOOST_TEST(dropped >= 2u);
}

// Data so unlike that the peers bring the weight of their views down, and brake.
BOOST_AUTO_TEST_CASE(weights_of_the_view_that_each_peer_measures) {
  RunConfig config = recorded(20'000);
  config.data.skew = 1;
  config.density = 0.2;
  const auto cluster = test::make_cluster(config, test::lan(8));
  test::finish(*cluster);
  BOOST_TEST(cluster->node(0)->status(cluster->now()).in_flight_weight < 0.5);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.agree == audited.updates);
}

BOOST_AUTO_TEST_CASE(steps_that_links_hold_back_are_in_the_next_record) {
  RunConfig config = recorded(12'000);
  config.density = 0.1;
  sim::ClusterOptions options = test::lan(4);
  options.network = {"narrow", 100ms, 100ms, 5ms, 6'000, 30'000};
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster, 600s);
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < 4; ++i) held += cluster->node(i)->figures().steps_held;
  BOOST_TEST(held > 0u);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.agree == audited.updates);
}

BOOST_AUTO_TEST_CASE(who_returns_with_nothing_begins_a_tape_of_its_own) {
  const RunConfig config = recorded(8000);
  const auto cluster = test::make_cluster(config, test::lan(4));
  cluster->run_until(TimePoint{1s});
  cluster->kill(3);
  cluster->run_until(TimePoint{1500ms});
  cluster->restart(3);
  test::finish(*cluster);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.streams.size() == 5u);
  BOOST_TEST(audited.agree == audited.updates);
}

// Links reset, processes die and return empty, and one is cut off for a while: logs get holes, and nobody is accused.
BOOST_AUTO_TEST_CASE(honest_swarms_with_faults_are_never_accused) {
  const char* given = std::getenv("RUMOR_AUDIT_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 10;
  std::uint64_t updates = 0, agree = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    sim::ClusterOptions options = test::lan(3 + seed % 3, seed);
    options.light_faults = true;
    if (seed % 2 == 0) options.network = sim::NetworkModel::preset("home").value();
    const RunConfig config = recorded(3000);
    const auto cluster = test::make_cluster(config, options);
    test::finish(*cluster, 600s);
    const Audited audited = audit_of(config, *cluster);
    BOOST_TEST(audited.differ == 0u, "seed " << seed);
    updates += audited.updates;
    agree += audited.agree;
  }
  BOOST_TEST_MESSAGE(seeds << " seeds: " << agree << " of " << updates << " updates made again, none differs");
  BOOST_TEST(agree > updates / 10 * 9);
}

BOOST_AUTO_TEST_CASE(a_rate_that_is_a_tenth_too_high_is_found) {
  check_that_the_cheat_is_found(10, from_the_tenth([](ModelTrainer& trainer, StepPlan plan) {
    plan.rate *= 1.1;
    return trainer.step(plan);
  }));
}

BOOST_AUTO_TEST_CASE(who_ignores_the_law_for_embeddings_is_found) {
  RunConfig config = recorded();
  config.model.hidden = {8, 8};
  config.optimizer.kind = "muon";
  config.rate = 0.02;
  config.batch = 8;
  config.global_batch = 12;  // four peers have mini-batches for one and a half
  config.adam_scaling = "none";
  const auto cheat = from_the_tenth([](ModelTrainer& trainer, StepPlan plan) {
    plan.adam_factor = 1;
    return trainer.step(plan);
  });
  check_that_the_cheat_is_found(10, cheat, {2, 4}, config);
}

// An honest step of that time has small pictures.
BOOST_AUTO_TEST_CASE(who_learns_from_pictures_of_another_size_is_found) {
  const auto cheat = from_the_tenth([](ModelTrainer& trainer, StepPlan plan) {
    BOOST_TEST(plan.size > 0u);
    plan.size = 8;
    return trainer.step(plan);
  });
  check_that_the_cheat_is_found(10, cheat, {2, 4}, test::in_sizes(recorded()));
}

BOOST_AUTO_TEST_CASE(who_sends_its_last_update_again_is_found) {
  StepResult last;
  check_that_the_cheat_is_found(10, [&, steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    if (++steps < 10) return last = trainer.step(plan);
    StepResult again = last;
    again.period = plan.period;
    return again;
  });
}

BOOST_AUTO_TEST_CASE(an_update_whose_signs_are_turned_is_found) {
  check_that_the_cheat_is_found(10, from_the_tenth([](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    for (std::uint8_t& negative : result.update.negative) negative ^= 1;
    result.payload = compress::encode(trainer.layout(), result.update);
    return result;
  }));
}

BOOST_AUTO_TEST_CASE(who_claims_more_samples_than_it_has_learned_from_is_found) {
  check_that_the_cheat_is_found(10, from_the_tenth([](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    result.samples *= 2;
    return result;
  }));
}

BOOST_AUTO_TEST_CASE(a_residual_that_is_not_what_the_steps_left_is_found) {
  check_that_the_cheat_is_found(10, from_the_tenth([](ModelTrainer& trainer, const StepPlan& plan) {
    std::vector<float> residual(trainer.residual().begin(), trainer.residual().end());
    for (float& waits : residual) waits *= 1.0001f;
    BOOST_TEST(trainer.restore(residual, trainer.optimizer_state()).ok());
    return trainer.step(plan);
  }));
}

BOOST_AUTO_TEST_CASE(rows_of_another_peer_are_found) { check_that_the_cheat_is_found(1, honest_step, {1, 4}); }

BOOST_AUTO_TEST_CASE(a_peer_that_nobody_can_repeat_is_not_compared) {
  const RunConfig config = recorded();
  sim::ClusterOptions options = test::lan(3);
  options.trainer = [config](std::size_t node, const NodeOptions& made) -> Result<std::unique_ptr<Trainer>> {
    RunConfig own = config;
    own.bytes_per_update = node == 1 ? 100 : 0;
    auto trainer = ModelTrainer::create(own, test::small_data(), made.shard, sampling_seed(own, made.node));
    if (!trainer) return trainer.error();
    return std::unique_ptr<Trainer>(std::move(trainer).value());
  };
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster);
  const Audited audited = audit_of(config, *cluster);
  BOOST_TEST(audited.differ == 0u);
  BOOST_TEST(audited.cannot_tell == cluster->node(1)->figures().own_updates());
  BOOST_TEST(audited.agree == audited.updates - audited.cannot_tell);
}

BOOST_AUTO_TEST_CASE(without_the_key_nothing_changes) {
  const auto plain = test::make_cluster(test::small_run(), test::lan(2));
  const auto also = test::make_cluster(recorded(), test::lan(2));
  BOOST_TEST((plain->node(0)->run() != also->node(0)->run()));
  test::finish(*plain);
  const auto update = plain->node(0)->log().find(plain->node(0)->log().keys().front());
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(!compress::split_record(*update->payload).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
