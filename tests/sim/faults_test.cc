// Kills, restarts, late joiners, partitions: training goes on, and at the end all replicas are equal.
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(a_killed_node_comes_back_empty_and_catches_up) {
  auto cluster = test::make_cluster(test::small_run(), test::lan(4));
  cluster->run_until(TimePoint{1s});
  const std::uint64_t before = cluster->node(0)->replica().samples();
  cluster->kill(2);
  cluster->run_until(TimePoint{2s});
  BOOST_TEST(cluster->node(0)->replica().samples() > before + 500);  // the others never stopped
  cluster->restart(2);
  cluster->run_until(TimePoint{2500ms});
  BOOST_REQUIRE(cluster->node(2) != nullptr);
  BOOST_TEST(cluster->node(2)->replica().samples() + 500 > cluster->node(0)->replica().samples());
  test::finish(*cluster);
  test::require_all_equal(*cluster, 4);
}

BOOST_AUTO_TEST_CASE(the_first_seed_may_die_for_good) {
  auto cluster = test::make_cluster(test::small_run(), test::lan(5));
  cluster->run_until(TimePoint{1s});
  cluster->kill(0);
  const TimePoint end = cluster->now() + 120s;
  const auto rest_complete = [&] {
    for (std::size_t i = 1; i < 5; ++i)
      if (!cluster->node(i)->complete()) return false;
    return true;
  };
  while (!rest_complete() && cluster->now() < end) cluster->run_until(cluster->now() + 100ms);
  BOOST_REQUIRE(rest_complete());
  test::require_all_equal(*cluster, 5);
}

BOOST_AUTO_TEST_CASE(a_late_joiner_gets_everything) {
  auto cluster = test::make_cluster(test::small_run(), test::lan(5));
  cluster->kill(4);  // starts late
  cluster->run_until(TimePoint{1500ms});
  cluster->restart(4);
  test::finish(*cluster);
  test::require_all_equal(*cluster, 5);
  const NodeStatus late = cluster->node(4)->status(cluster->now());
  BOOST_TEST(late.training.steps > 0u);
  BOOST_TEST(late.traffic.snapshots_installed == 1u);  // cheaper than a second and a half of updates
}

BOOST_AUTO_TEST_CASE(both_sides_of_a_partition_train_on_and_agree_after_it) {
  auto cluster = test::make_cluster(test::small_run(16'000), test::lan(6));
  cluster->run_until(TimePoint{1s});
  cluster->partition({0, 0, 0, 1, 1, 1});
  const std::uint64_t left = cluster->node(0)->replica().samples(),
                      right = cluster->node(5)->replica().samples();
  cluster->run_until(TimePoint{2500ms});
  BOOST_TEST(cluster->node(0)->replica().samples() > left + 300);
  BOOST_TEST(cluster->node(5)->replica().samples() > right + 300);
  BOOST_TEST((cluster->node(0)->replica().digest() != cluster->node(5)->replica().digest()));
  cluster->heal();
  test::finish(*cluster);
  test::require_all_equal(*cluster, 6);
}

BOOST_AUTO_TEST_CASE(random_kills_and_resets_over_many_seeds) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    BOOST_TEST_CONTEXT("replay with --faults light --sim-seed " << seed) {
      sim::ClusterOptions options = test::lan(3 + seed % 5, seed);
      options.light_faults = true;
      auto result = test::make_cluster(test::small_run(12'000), options)->run(nullptr);
      BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
      BOOST_TEST(result->link_resets + result->restarts > 0u);
      BOOST_TEST(result->doubled == 0u);
      // A killed node loses only updates that it had published and no peer had received.
      BOOST_TEST((result->identical || result->lost <= result->restarts * 4));
    }
  }
}

BOOST_AUTO_TEST_CASE(planned_faults_strike_when_and_whom_they_should) {
  sim::ClusterOptions options = test::lan(5);
  options.planned_faults = sim::parse_fault_plan(R"(
    [[fault]]
    kind = "kill"
    at_s = 0.5
    lasts_s = 0.3
    nodes = [1]
    [[fault]]
    kind = "partition"
    at_s = 1
    lasts_s = 0.4
    nodes = [3, 4]
    [[fault]]
    kind = "reset"
    at_s = 0.2
    nodes = [0]
    every_s = 0.4
  )", "plan.toml", 5).value();
  auto cluster = test::make_cluster(test::small_run(), options);
  cluster->run_until(TimePoint{700ms});
  BOOST_TEST(cluster->node(1) == nullptr);
  cluster->run_until(TimePoint{1200ms});
  BOOST_TEST(cluster->node(1) != nullptr);
  BOOST_TEST((cluster->node(0)->replica().digest() != cluster->node(4)->replica().digest()));
  const auto result = cluster->run(nullptr);
  BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
  BOOST_TEST(result->restarts == 1u);
  BOOST_TEST(result->partitions == 1u);
  BOOST_TEST(result->link_resets >= 4u);
  BOOST_TEST(result->identical);
}
