// Averaging with neighbours: whole peers in virtual time.
#include "tests/shortened.h"
#include "tests/sim/support.h"

using namespace rumor;
using test::run;

namespace {

RunConfig average_run(std::uint64_t samples = 16'000) {
  RunConfig config = test::small_run(samples);
  config.mode = "average";
  config.rate = 0.5;
  config.density = 0.1;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(average)

BOOST_AUTO_TEST_CASE(neighbours_learn_together_and_stay_near_each_other) {
  const sim::SimResult first = run(average_run(), test::lan(8)), again = run(average_run(), test::lan(8));
  BOOST_TEST(first.loss < 0.6 * first.curve.front().loss);
  BOOST_TEST(*first.together_loss < 0.6 * first.curve.front().loss);
  BOOST_TEST(first.disagreement > 0.0001);
  BOOST_TEST(first.disagreement < 0.02);
  BOOST_TEST(first.silent_fraction < 0.01);
  BOOST_TEST(first.samples >= 16'000u);
  BOOST_TEST(first.samples < 16'500u);
  BOOST_TEST(!first.identical);
  BOOST_TEST(first.guarantee.find("never equal") != std::string::npos);
  BOOST_TEST(first.trace_hash == again.trace_hash);
  RunConfig apart = average_run();
  apart.neighbour_rules.consensus_rate = 0.01;
  BOOST_TEST(run(apart, test::lan(8)).disagreement > 2 * first.disagreement);
}

// Peers estimate the run's progress by themselves, without the simulator's help.
BOOST_AUTO_TEST_CASE(peers_guess_how_far_the_run_is) {
  sim::ClusterOptions options = test::lan(12);
  options.step_factors = {1, 2, 3, 4};
  auto cluster = test::make_cluster(average_run(1'000'000), options);
  cluster->run_until(TimePoint{15s});
  double all = 0;
  for (std::size_t i = 0; i < 12; ++i)
    all += static_cast<double>(cluster->node(i)->neighbourhood()->own_samples());
  for (std::size_t i = 0; i < 12; ++i)
    BOOST_TEST(static_cast<double>(cluster->node(i)->samples()) == all, boost::test_tools::tolerance(0.15));
}

// Not shortened under a sanitizer: in 100 steps the start-up still counts, which costs more where peers are more.
BOOST_AUTO_TEST_CASE(traffic_of_a_peer_is_the_same_for_any_number_of_them) {
  const auto bytes_a_step = [](std::size_t nodes) {
    RunConfig config = average_run(nodes * 200 * 16);
    config.model.hidden = {64};
    config.density = 0.2;
    const sim::SimResult r = run(config, test::lan(nodes));
    return r.sent_bytes_per_node * static_cast<double>(nodes) / static_cast<double>(r.updates);
  };
  BOOST_TEST(bytes_a_step(12) == bytes_a_step(48), boost::test_tools::tolerance(0.1));
}

BOOST_AUTO_TEST_CASE(who_has_not_drifted_keeps_silent) {
  RunConfig config = average_run();
  const sim::SimResult always = run(config, test::lan(8));
  config.neighbour_rules.drift_bound = 0.2;
  const sim::SimResult seldom = run(config, test::lan(8));
  BOOST_TEST(seldom.silent_fraction > 0.1);
  BOOST_TEST(seldom.sent_bytes_per_node < (1.1 - seldom.silent_fraction) * always.sent_bytes_per_node);
  BOOST_TEST(seldom.loss < 0.6 * seldom.curve.front().loss);
}

BOOST_AUTO_TEST_CASE(with_local_steps_a_peer_speaks_after_so_many) {
  RunConfig config = average_run(40'000);
  config.round_rules.local_steps = 4;
  const sim::SimResult r = run(config, test::lan(8));
  BOOST_TEST(r.silent_fraction == 0.75, boost::test_tools::tolerance(0.01));
  BOOST_TEST(r.loss < 0.6 * r.curve.front().loss);
}

// A thin uplink: what does not fit is told later, not queued.
BOOST_AUTO_TEST_CASE(a_busy_uplink_makes_a_peer_silent) {
  sim::ClusterOptions options = test::lan(4);
  options.network.up_bytes_per_second = 40'000;
  RunConfig config = average_run(40'000);
  config.model.hidden = {64};
  config.density = 0.2;
  const sim::SimResult r = run(config, options);
  BOOST_TEST(r.silent_fraction > 0.2);
  BOOST_TEST(r.loss < 0.6 * r.curve.front().loss);
}

BOOST_AUTO_TEST_CASE(peers_come_and_go) {
  const RunConfig config = average_run(40'000);
  using Kind = sim::PlannedFault::Kind;
  sim::ClusterOptions options = test::lan(8);
  options.planned_faults = {{Kind::kill, 800ms, 200ms, 0ms, {0, 1}},
                            {Kind::kill, 3800ms, 200ms, 0ms, {0, 1, 2, 3, 4, 5}},
                            {Kind::kill, 4500ms, 400ms, 0ms, {6}}};
  const sim::SimResult r = run(config, options);
  BOOST_TEST(r.restarts == 9u);
  BOOST_TEST(r.loss < 0.7 * r.curve.front().loss);
  BOOST_TEST(r.disagreement < 0.5);
  BOOST_TEST(r.samples >= 40'000u);
}

BOOST_AUTO_TEST_CASE(copies_are_equal_to_the_bit_through_kills_and_broken_links) {
  sim::ClusterOptions options = test::lan(10);
  options.light_faults = true;
  auto cluster = test::make_cluster(average_run(1'000'000), options);
  cluster->run_until(TimePoint{3s});
  cluster->kill(4);
  cluster->run_until(TimePoint{4s});
  if (cluster->node(4) == nullptr) cluster->restart(4);
  for (int turn = 0; turn < 20; ++turn) {
    cluster->reset_link_of(static_cast<std::size_t>(turn) % 10);
    cluster->run_until(cluster->now() + 300ms);
    for (std::size_t i = 0; i < 10; ++i)
      if (cluster->node(i) != nullptr) cluster->node(i)->check_invariants();
  }
}

// A run that has ended on its own: everybody has finished, and what each holds of the others is theirs.
BOOST_AUTO_TEST_CASE(at_the_end_what_is_held_is_equal) {
  auto cluster = test::make_cluster(average_run(8'000), test::lan(6));
  test::finish(*cluster);
  cluster->run_until(cluster->now() + 15s);
  test::check_held_copies(*cluster, 6);
}

BOOST_AUTO_TEST_CASE(a_budget_in_bytes_is_kept) {
  RunConfig config = average_run();
  config.bytes_per_update = 60;
  const sim::SimResult r = run(config, test::lan(4));
  BOOST_TEST(r.update_bytes_mean <= 60);
  BOOST_TEST(r.loss < 0.9 * r.curve.front().loss);
}

BOOST_AUTO_TEST_SUITE_END()
