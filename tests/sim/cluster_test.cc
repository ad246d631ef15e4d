// Whole runs in virtual time: convergence of replicas, determinism, what the network model costs.
#include "tests/shortened.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(everyone_ends_with_the_same_bits) {
  for (std::size_t nodes : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{20}}) {
    BOOST_TEST_CONTEXT(nodes << " nodes") {
      const sim::SimResult r = test::run(test::small_run(), test::lan(nodes));
      BOOST_TEST(r.identical);
      BOOST_TEST(r.lost == 0u);
      BOOST_TEST(r.doubled == 0u);
      BOOST_TEST(r.samples >= 8000u);
      BOOST_TEST(r.samples < 8000u + 16 * 2 * nodes);
      BOOST_TEST(r.updates == r.samples / 16);
      if (nodes > 1) BOOST_TEST(r.copies_per_delivery <= 1.02);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_seed_one_trace) {
  const sim::SimResult a = test::run(test::small_run(), test::lan(6, 7)),
                       b = test::run(test::small_run(), test::lan(6, 7));
  const sim::SimResult other = test::run(test::small_run(), test::lan(6, 8));
  BOOST_TEST(a.trace_hash == b.trace_hash);
  BOOST_TEST(a.digest == b.digest);
  BOOST_TEST(a.trace_hash != other.trace_hash);
}

// The constant is the trace of one build on one machine: debug, release, sanitizers, g++ and clang must all
// give it. It changes when the protocol, the recipe or the format does; then take the value this test prints.
BOOST_AUTO_TEST_CASE(the_trace_is_the_same_in_every_build) {
  const sim::SimResult r = test::run(test::small_run(3000), test::lan(5, 11));
  BOOST_TEST_MESSAGE("trace " << std::hex << r.trace_hash);
  BOOST_TEST(r.trace_hash == 0x3830ab7f39b3a738u);
}

BOOST_AUTO_TEST_CASE(training_learns) {
  RunConfig config = test::small_run(24'000);
  config.model.hidden = {32};
  const sim::SimResult r = test::run(config, test::lan(4));
  BOOST_REQUIRE(r.accuracy.has_value());
  BOOST_TEST(r.curve.front().loss > 1.5);
  BOOST_TEST(r.loss < r.curve.front().loss * 0.6);
}

BOOST_AUTO_TEST_CASE(a_slow_network_delays_and_loses_nothing) {
  sim::ClusterOptions options = test::lan(5);
  options.network = sim::NetworkModel::preset("home").value();
  const sim::SimResult r = test::run(test::small_run(), options);
  BOOST_TEST(r.identical);
  BOOST_TEST(r.delivery_p50 > 0.005);
  BOOST_TEST(r.delivery_p99 < 1.0);
}

// Eight peers make more than the wires carry: queues stay short, and what is over waits in the residuals.
BOOST_AUTO_TEST_CASE(on_links_too_narrow_for_all_updates_come_late_by_a_second_and_not_by_ten) {
  sim::ClusterOptions options = test::lan(8);
  options.network = {"narrow", 100ms, 100ms, 5ms, 65'000, 325'000};
  RunConfig config = test::small_run(100'000);
  config.density = 0.1;
  const sim::SimResult r = test::run(config, options);
  BOOST_TEST(r.identical);
  BOOST_TEST(r.lost == 0u);
  BOOST_TEST(r.updates < r.samples / 16 * 9 / 10);  // of as many steps
  BOOST_TEST(r.delivery_p50 < 0.8);
  BOOST_TEST(r.delivery_p99 < 4.0);
  BOOST_TEST(r.copies_per_delivery < 1.04);
}

// Training makes twice what the wires carry: the rest waits in the residuals, not in queues without end, and
// no sample is left out of the count.
BOOST_AUTO_TEST_CASE(who_is_ahead_of_the_network_merges_instead_of_queueing) {
  sim::ClusterOptions options = test::lan(4);
  options.network.up_bytes_per_second = 80'000;
  options.network.down_bytes_per_second = 800'000;
  const std::uint64_t samples = test::shortened(90'000), seconds = test::shortened(25);
  RunConfig config = test::small_run(samples);
  config.model.hidden = {128};
  config.density = 0.2;
  config.in_flight_weight = 0;  // hundreds of updates are under way: supposing is slow, and not what this is about
  auto cluster = test::make_cluster(config, options);
  cluster->run_until(TimePoint{std::chrono::seconds(seconds)});
  std::uint64_t held = 0, steps = 0, most_samples = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const NodeStatus status = cluster->node(i)->status(cluster->now());
    held += status.training.steps_held;
    steps += status.training.steps;
    most_samples = std::max(most_samples, status.samples);
    BOOST_TEST(status.traffic.sent_bytes < seconds * 80'000 + 4u * limits::link_backlog_high);
  }
  BOOST_TEST(held > steps / 8);
  BOOST_TEST(held < steps);
  const sim::SimResult r = cluster->run(nullptr).value();
  BOOST_TEST(r.identical);
  BOOST_TEST(r.lost == 0u);
  BOOST_TEST(r.samples >= samples);
  BOOST_TEST(r.samples > r.updates * config.batch * 9 / 8, "what was held back is counted when it is sent");
}

BOOST_AUTO_TEST_CASE(alone_is_fine) {
  auto cluster = test::make_cluster(test::small_run(2000), test::lan(3));
  cluster->kill(1);  // the others never start: node 0's seeds answer with a refusal
  cluster->kill(2);
  cluster->run_until(TimePoint{2s});
  const NodeStatus status = cluster->node(0)->status(cluster->now());
  BOOST_TEST(status.samples > 0u);
  BOOST_TEST(status.phase == "training");
  BOOST_TEST(status.waiting_for.find("h1:7000") != std::string::npos);
}

namespace {

NodeStatus after_twenty_seconds_on_narrow_links(RunConfig config) {
  config.model.hidden = {128};
  sim::ClusterOptions options = test::lan(6);
  options.network = {"narrow", 20ms, 60ms, 5ms, 20'000, 100'000};
  const auto cluster = test::make_cluster(config, options);
  cluster->run_until(TimePoint{20s});
  return cluster->node(0)->status(cluster->now());
}

}  // namespace

BOOST_AUTO_TEST_CASE(on_narrow_links_steps_wait_where_the_run_file_says_so) {
  RunConfig config = test::small_run(100'000);
  config.density = 0.2;
  const NodeStatus thin = after_twenty_seconds_on_narrow_links(config);
  config.narrow_links = narrow_wait;
  const NodeStatus wait = after_twenty_seconds_on_narrow_links(config);
  BOOST_TEST(thin.training.seconds_waited_links == 0);
  BOOST_TEST(wait.training.seconds_waited_links > 5);
  BOOST_TEST(wait.training.seconds_waited == 0);
  BOOST_TEST(wait.training.steps < thin.training.steps / 2);
  BOOST_TEST(wait.training.steps_held == 0u);
  BOOST_TEST(wait.density_factor > 2 * thin.density_factor);
  BOOST_TEST(wait.staleness_mean() < thin.staleness_mean() / 2);
}

// A budget in bytes decides alone.
BOOST_AUTO_TEST_CASE(narrow_links_make_updates_thinner) {
  for (const double budget : {0.0, 800.0}) {
    RunConfig config = test::small_run(100'000);
    config.density = budget > 0 ? 0 : 0.2;
    config.bytes_per_update = budget;
    const NodeStatus status = after_twenty_seconds_on_narrow_links(config);
    if (budget > 0) {
      BOOST_TEST(status.density_factor == 1);
    } else {
      BOOST_TEST(status.density_factor < 0.5);
      BOOST_TEST(status.density() < 0.6 * status.target_density);
    }
  }
}
