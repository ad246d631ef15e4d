// Unequal peers: what a straggler costs, and the rules by which an origin waits for others
// (runtime/exchange/staleness.h).
#include "tests/sim/support.h"

using namespace rumor;

namespace {

// Peers whose steps take 20 ms, but for the last one.
sim::ClusterOptions with_straggler(std::size_t nodes, double factor) {
  sim::ClusterOptions options = test::lan(nodes);
  options.step_factors.assign(nodes, 1);
  options.step_factors.back() = factor;
  return options;
}

std::uint64_t own_updates(const sim::Cluster& cluster, std::size_t i) {
  return cluster.node(i)->status(cluster.now()).training.own_updates();
}

double seconds_waited(const sim::Cluster& cluster, std::size_t i) {
  return cluster.node(i)->status(cluster.now()).training.seconds_waited;
}

// Every message takes so long to arrive.
sim::ClusterOptions far_apart(Duration latency) {
  sim::ClusterOptions options = test::lan(4);
  options.network.latency_min = options.network.latency_max = latency;
  return options;
}

// The factor of the learning rate when every message takes ten steps to arrive.
double rate_factor_far_apart(const StalenessRules& rules) {
  RunConfig config = test::small_run(16'000);
  config.staleness = rules;
  auto cluster = test::make_cluster(config, far_apart(200ms));
  cluster->run_until(TimePoint{4s});
  const NodeStatus status = cluster->node(0)->status(cluster->now());
  BOOST_REQUIRE(status.staleness.size() == 3u);
  BOOST_TEST(status.staleness[0].mean > 5);
  BOOST_TEST(status.staleness[0].mean < 15);
  const double progress = static_cast<double>(status.samples) / static_cast<double>(config.samples);
  BOOST_TEST(status.rate == status.rate_factor * config.rate_for(status.live_peers, progress),
             boost::test_tools::tolerance(1e-9));
  return status.rate_factor;
}

}  // namespace

// Dense averaging waits for the slowest at every step; nobody else does.
BOOST_AUTO_TEST_CASE(one_straggler_slows_dense_averaging_and_nothing_else) {
  const auto seconds = [](const char* mode, double factor) {
    RunConfig config = test::small_run(32'000);
    config.mode = mode;
    sim::ClusterOptions options = with_straggler(16, factor);
    options.step = 200ms;  // far more than the messages of a ring take
    const auto result = sim::simulate(config, test::small_data(), options, nullptr);
    BOOST_REQUIRE(result.ok());
    return result->virtual_seconds;
  };
  BOOST_TEST(seconds("sync", 10) > 8.5 * seconds("sync", 1));  // its step always varies; of sixteen the slowest counts
  BOOST_TEST(seconds("broadcast", 10) < 1.15 * seconds("broadcast", 1));
}

BOOST_AUTO_TEST_CASE(nobody_runs_further_ahead_than_the_bound) {
  RunConfig config = test::small_run(16'000);
  for (const std::uint32_t bound : {0u, 3u}) {
    config.staleness.steps_ahead = bound;
    auto cluster = test::make_cluster(config, with_straggler(4, 4));
    std::uint64_t lead_max = 0;
    for (TimePoint at{1s}; at <= TimePoint{5s}; at += 250ms) {
      cluster->run_until(at);
      lead_max = std::max(lead_max, own_updates(*cluster, 0) - own_updates(*cluster, 3));
    }
    // Clocks begin when they hear of each other, some four steps of the fast ones after the start.
    if (bound == 0)
      BOOST_TEST(lead_max > 100u);
    else
      BOOST_TEST(lead_max <= bound + 1 + 6u);
    BOOST_TEST((seconds_waited(*cluster, 0) > 2) == (bound != 0));
    BOOST_TEST(seconds_waited(*cluster, 3) == 0);
    if (bound != 0) {
      test::finish(*cluster);
      test::require_all_equal(*cluster, 4);
    }
  }
}

BOOST_AUTO_TEST_CASE(soft_sync_waits_for_some_and_not_for_all) {
  RunConfig config = test::small_run(16'000);
  std::uint64_t made[4] = {};
  for (const std::uint32_t wanted : {0u, 2u, 3u}) {
    config.staleness.soft_sync = wanted;
    auto cluster = test::make_cluster(config, with_straggler(4, 8));
    cluster->run_until(TimePoint{4s});
    made[wanted] = own_updates(*cluster, 0);
    test::finish(*cluster);
    test::require_all_equal(*cluster, 4);
  }
  BOOST_TEST(made[2] > made[0] * 3 / 4);  // two others are as fast
  BOOST_TEST(made[3] < made[0] * 3 / 4);
}

// A message takes eight steps to arrive.
BOOST_AUTO_TEST_CASE(peers_in_step_know_the_last_update_of_everyone) {
  const auto staleness = [](const StalenessRules& rules) {
    RunConfig config = test::small_run(16'000);
    config.staleness = rules;
    auto cluster = test::make_cluster(config, far_apart(160ms));
    cluster->run_until(TimePoint{3s});
    std::uint64_t last = 0;
    const NodeStatus status = cluster->node(0)->status(cluster->now());
    for (const PeerStaleness& peer : status.staleness) last = std::max(last, peer.last);
    test::finish(*cluster);
    test::require_all_equal(*cluster, 4);
    return last;
  };
  BOOST_TEST(staleness({}) >= 7u);
  BOOST_TEST(staleness({.staleness_bound = 4}) <= 3u);
  BOOST_TEST(staleness({.staleness_bound = 1}) == 0u);
}

// Two of three are killed for good while the third waits for them.
void check_that_nobody_waits_for_the_dead(const StalenessRules& rules) {
  RunConfig config = test::small_run(8000);
  config.staleness = rules;
  auto cluster = test::make_cluster(config, test::lan(3));
  cluster->run_until(TimePoint{1s});
  cluster->kill(1);
  cluster->kill(2);
  cluster->run_until(TimePoint{1500ms});
  const NodeStatus status = cluster->node(0)->status(cluster->now());
  BOOST_TEST(status.waiting_for.find("exchange.") != std::string::npos, status.waiting_for);
  const std::uint64_t then = own_updates(*cluster, 0);
  cluster->run_until(TimePoint{10s});
  BOOST_TEST(own_updates(*cluster, 0) > then + 100);
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_the_dead) {
  check_that_nobody_waits_for_the_dead({.scale = 1, .soft_sync = 2, .steps_ahead = 2});
  check_that_nobody_waits_for_the_dead({.staleness_bound = 1});
}

BOOST_AUTO_TEST_CASE(late_updates_lower_the_rate) {
  BOOST_TEST(rate_factor_far_apart({.brake_from = 0}) == 1);
  BOOST_TEST(rate_factor_far_apart({.scale = 1}) < 0.2);
  const double braked = rate_factor_far_apart({.brake_from = 3});
  BOOST_TEST(braked > 7.0 / 31);
  BOOST_TEST(braked < 7.0 / 11);
}

// Two of four train alone until a quarter of the samples has been seen.
BOOST_AUTO_TEST_CASE(the_early_phase_belongs_to_some) {
  RunConfig config = test::small_run(16'000);
  config.early_share = 0.25;
  config.early_peers = 2;
  auto cluster = test::make_cluster(config, test::lan(4));
  const auto seen = [&] { return cluster->node(0)->replica().samples(); };
  while (seen() < 3'900) cluster->run_until(cluster->now() + 20ms);
  BOOST_TEST(own_updates(*cluster, 0) > 50u);
  BOOST_TEST(own_updates(*cluster, 1) > 50u);
  BOOST_TEST(own_updates(*cluster, 2) == 0u);
  BOOST_TEST(own_updates(*cluster, 3) == 0u);
  const std::string waiting = cluster->node(2)->status(cluster->now()).waiting_for;
  BOOST_TEST(waiting.find("exchange.early_share = 0.25") != std::string::npos, waiting);
  while (seen() < 8'000) cluster->run_until(cluster->now() + 20ms);
  BOOST_TEST(own_updates(*cluster, 2) > 20u);
  test::finish(*cluster);
  test::require_all_equal(*cluster, 4);
}

// Those who were to begin never come.
BOOST_AUTO_TEST_CASE(somebody_begins_where_the_first_are_missing) {
  RunConfig config = test::small_run(4'000);
  config.early_share = 0.5;
  config.early_peers = 2;
  auto cluster = test::make_cluster(config, test::lan(4));
  cluster->kill(0);
  cluster->kill(1);
  cluster->run_until(TimePoint{8s});
  BOOST_TEST(own_updates(*cluster, 2) + own_updates(*cluster, 3) == 0u);
  cluster->run_until(TimePoint{40s});
  BOOST_TEST(own_updates(*cluster, 2) > 20u);
  BOOST_TEST(own_updates(*cluster, 3) > 20u);
}

// Six peers, two at once, twenty periods a turn. Every peer trains, and at any time updates come from two of them.
BOOST_AUTO_TEST_CASE(peers_train_in_turn) {
  RunConfig config = test::small_run(16'000);
  config.turns = {.trainers = 2, .turn_updates = 20};
  auto cluster = test::make_cluster(config, test::lan(6));
  std::uint64_t made[6] = {}, turns_seen = 0;
  std::size_t last_group = 3;
  while (cluster->node(0)->replica().samples() < 15'000) {
    cluster->run_until(cluster->now() + 100ms);
    std::vector<std::size_t> active;
    for (std::size_t i = 0; i < 6; ++i)
      if (const std::uint64_t now = own_updates(*cluster, i); std::exchange(made[i], now) != now) active.push_back(i);
    if (active.size() == 2 && active[0] % 3 == active[1] % 3) {
      turns_seen += active[0] % 3 != last_group;
      last_group = active[0] % 3;
      const NodeStatus status = cluster->node(active[0])->status(cluster->now());
      BOOST_TEST(status.live_peers == 2u);
      BOOST_TEST(status.staleness_mean() < 3);
    }
  }
  BOOST_TEST(turns_seen >= 6u);
  std::uint64_t updates = 0;
  for (const std::uint64_t of_peer : made) {
    BOOST_TEST(of_peer > 100u);
    updates += of_peer;
  }
  // A turn ends with an update from the residual, of no samples: one in twenty.
  BOOST_TEST(updates > cluster->node(0)->replica().samples() / config.batch + 30);
  const std::size_t idle = (last_group + 1) % 3;
  const std::string waiting = cluster->node(idle)->status(cluster->now()).waiting_for;
  BOOST_TEST(waiting.find("exchange.trainers = 2") != std::string::npos, waiting);
  BOOST_TEST(seconds_waited(*cluster, idle) > 2);
  test::finish(*cluster);
  test::require_all_equal(*cluster, 6);
}

// A whole group is killed: the next one takes over, and goes on when it is its turn again.
BOOST_AUTO_TEST_CASE(a_dead_group_loses_its_turn) {
  RunConfig config = test::small_run(16'000);
  config.turns = {.trainers = 2, .turn_updates = 20};
  auto cluster = test::make_cluster(config, test::lan(6));
  cluster->run_until(TimePoint{100ms});
  cluster->kill(1);
  cluster->kill(4);
  cluster->run_until(TimePoint{9s});
  BOOST_TEST(own_updates(*cluster, 2) == 0u);
  cluster->run_until(TimePoint{40s});
  BOOST_TEST(own_updates(*cluster, 2) >= 40u);
  BOOST_TEST(own_updates(*cluster, 0) >= 40u);
}

// Only two of eight peers are there, of different groups. Both train, since four may at once.
BOOST_AUTO_TEST_CASE(where_peers_are_missing_groups_train_together) {
  RunConfig config = test::small_run(16'000);
  config.turns = {.trainers = 4, .turn_updates = 20};
  auto cluster = test::make_cluster(config, test::lan(8));
  for (std::size_t i = 0; i < 8; ++i)
    if (i != 0 && i != 3) cluster->kill(i);
  cluster->run_until(TimePoint{4s});
  const std::uint64_t before[2] = {own_updates(*cluster, 0), own_updates(*cluster, 3)};
  cluster->run_until(TimePoint{5s});
  BOOST_TEST(own_updates(*cluster, 0) > before[0] + 40);
  BOOST_TEST(own_updates(*cluster, 3) > before[1] + 40);
}

// Four steps an update: a quarter of the updates for the same samples in about the same time.
BOOST_AUTO_TEST_CASE(local_steps_make_fewer_updates_of_the_same_work) {
  RunConfig config = test::small_run(16'000);
  sim::SimResult of[2];
  for (const int several : {0, 1}) {
    config.round_rules.local_steps = several == 1 ? 4 : 1;
    of[several] = sim::simulate(config, test::small_data(), test::lan(4), nullptr).value();
    BOOST_TEST(of[several].identical);
    BOOST_TEST(of[several].lost + of[several].doubled == 0u);
    BOOST_TEST(of[several].loss < of[several].curve.front().loss / 2);
  }
  const auto about = boost::test_tools::tolerance(0.1);
  BOOST_TEST(static_cast<double>(of[1].updates) == static_cast<double>(of[0].updates) / 4, about);
  BOOST_TEST(of[1].virtual_seconds == of[0].virtual_seconds, about);
  BOOST_TEST(of[1].density == 4 * of[0].density, about);  // what is sent for a sample stays
}

// Updates that come twelve steps late: rounds become about as long, and no sample is lost.
BOOST_AUTO_TEST_CASE(rounds_become_as_long_as_updates_are_late) {
  RunConfig config = test::small_run(32'000);
  config.round_rules.local_steps = 0;
  sim::ClusterOptions close_by = test::lan(4), far_off = test::lan(4);
  far_off.network.latency_min = far_off.network.latency_max = 12 * far_off.step;
  const sim::SimResult soon = sim::simulate(config, test::small_data(), close_by, nullptr).value();
  const sim::SimResult late = sim::simulate(config, test::small_data(), far_off, nullptr).value();
  for (const sim::SimResult* one : {&soon, &late}) {
    BOOST_TEST(one->identical);
    BOOST_TEST(one->lost + one->doubled == 0u);
    BOOST_TEST(one->samples >= 32'000u);
    BOOST_TEST(one->loss < one->curve.front().loss / 2);
  }
  BOOST_TEST(late.updates < soon.updates * 3 / 5);

  auto cluster = test::make_cluster(config, far_off);
  cluster->run_until(TimePoint{30s});
  const NodeStatus status = cluster->node(0)->status(cluster->now());
  BOOST_TEST(status.batches >= 8u);
  BOOST_TEST(status.target_density == config.density_for(4, status.batches));  // what is sent for a sample stays
}
