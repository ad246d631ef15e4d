// Routing by measured speed: who gets how many micro-batches in successive windows of time, and how near the pipeline
// comes to the sum of its replicas' speeds. `--log_level=message` prints the shares.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/base/text.h"
#include "tests/shortened.h"
#include "tests/unit/gossip/pipeline/pipeline_world.h"

namespace rumor::gossip::test {
namespace {

using rumor::test::shortened;
using Windows = std::vector<std::vector<double>>;  // for each window the micro-batches of each node

// Two sources, and three replicas of each other stage. Those of stage `limiting` take 2 ms for each work, all others
// next to nothing.
struct RoutedSetting {
  std::vector<std::size_t> replicas = {2, 3, 3};
  std::uint32_t limiting = 2, micro_batches = 32;
  Duration delay = 200us;
};

PipelineWorld routed_world(const RoutedSetting& setting, std::uint64_t seed = 1) {
  PipelineWorld world({.replicas = setting.replicas, .micro_batches = setting.micro_batches}, seed);
  world.delay = setting.delay;
  for (auto& node : world.nodes) node.work = node.stage == setting.limiting ? 2ms : 100us;
  return world;
}

// Micro-batches that each node has answered, as its own steps and those under way show.
std::vector<double> done_by_node(const PipelineWorld& world) {
  std::vector<double> done;
  for (const auto& node : world.nodes) {
    std::size_t counted = 0;
    node.pipeline->each_counted([&](Slot, const MicroBatchName&) { ++counted; });
    done.push_back(static_cast<double>(node.pipeline->figures().counted + counted));
  }
  return done;
}

Windows run_windows(PipelineWorld& world, std::uint64_t windows, Duration length) {
  Windows all;
  for (std::uint64_t i = 0; i < windows; ++i) {
    const std::vector<double> before = done_by_node(world);
    world.run(length);
    std::vector<double> now = done_by_node(world);
    for (std::size_t k = 0; k < before.size(); ++k) now[k] -= before[k];
    all.push_back(std::move(now));
  }
  return all;
}

// Micro-batches of `node` for each of the mean of `others`, in each window.
std::vector<double> shares_of(const Windows& windows, std::size_t node, const std::vector<std::size_t>& others,
                              const char* title) {
  std::vector<double> shares;
  std::string text;
  for (const auto& window : windows) {
    double sum = 0;
    for (const std::size_t other : others) sum += window[other];
    shares.push_back(window[node] * static_cast<double>(others.size()) / sum);
    text += " " + fixed(shares.back(), 2);
  }
  BOOST_TEST_MESSAGE(title << ":" << text);
  return shares;
}

double micro_batches_a_second(const Windows& windows, double seconds, const PipelineWorld& world) {
  double sum = 0;
  for (const auto& window : windows)
    for (std::size_t i = 0; i < window.size(); ++i)
      if (world.nodes[i].stage == 1) sum += window[i];
  return sum / seconds / static_cast<double>(windows.size());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline_routing)

BOOST_AUTO_TEST_CASE(a_four_times_slower_replica_gets_a_quarter_and_nothing_oscillates) {
  for (const std::uint32_t limiting : {2u, 3u})
    for (const Duration delay : {Duration(200us), Duration(2ms)}) {
      PipelineWorld world = routed_world({.limiting = limiting, .delay = delay});
      const std::size_t first = limiting == 2 ? 2 : 5, slow = first + 2;
      world.nodes[slow].work = 8ms;
      world.emit_all(true);
      world.run(2s);
      const Windows windows = run_windows(world, shortened(8), 2s);
      const std::string title = str("stage ", limiting, ", ", delay.count(), " us a link, share of the slow replica");
      const std::vector<double> shares = shares_of(windows, slow, {first, first + 1}, title.c_str());
      for (const double share : shares) BOOST_TEST((share > 0.2 && share < 0.3), title << ": " << share);
      // The bound: the sum of the speeds. A replica of the middle works twice on a micro-batch.
      const double bound = 2.25 / (limiting == 2 ? 0.004 : 0.002);
      const double reached = micro_batches_a_second(windows, 2, world) / bound;
      BOOST_TEST_MESSAGE("  micro-batches a second: " << fixed(reached, 2) << " of the sum of the speeds");
      BOOST_TEST(reached > (delay < 1ms ? 0.9 : 0.72));
    }
}

BOOST_AUTO_TEST_CASE(the_share_follows_a_speed_that_changes) {
  PipelineWorld world = routed_world({});
  world.emit_all(true);
  world.run(2s);
  const std::vector<double> alike = shares_of(run_windows(world, 4, 1s), 4, {2, 3}, "alike");
  world.nodes[4].work = 8ms;
  const std::vector<double> slower = shares_of(run_windows(world, 5, 1s), 4, {2, 3}, "then four times slower");
  world.nodes[4].work = 2ms;
  const std::vector<double> again = shares_of(run_windows(world, 5, 1s), 4, {2, 3}, "then alike again");
  for (const double share : alike) BOOST_TEST((share > 0.85 && share < 1.15), share);
  // The window in which it changes is left out.
  for (std::size_t i = 1; i < slower.size(); ++i) BOOST_TEST((slower[i] > 0.2 && slower[i] < 0.28), slower[i]);
  for (std::size_t i = 1; i < again.size(); ++i) BOOST_TEST((again[i] > 0.85 && again[i] < 1.15), again[i]);
}

// Measured as a thousand times slower, it would get nothing for ever if nobody tried it again.
BOOST_AUTO_TEST_CASE(a_replica_that_was_very_slow_is_tried_again) {
  PipelineWorld world = routed_world({});
  world.nodes[4].work = 2s;
  world.emit_all(true);
  world.run(20s);
  const std::vector<double> slow = shares_of(run_windows(world, shortened(3), 5s), 4, {2, 3}, "very slow");
  for (const double share : slow) BOOST_TEST(share < 0.02);
  world.nodes[4].work = 2ms;
  world.run(20s);
  const std::vector<double> quick = shares_of(run_windows(world, shortened(3), 5s), 4, {2, 3}, "quick again");
  for (const double share : quick) BOOST_TEST((share > 0.85 && share < 1.15), share);
}

BOOST_AUTO_TEST_CASE(a_new_replica_gets_a_fair_share_within_a_second) {
  for (const std::uint32_t stage : {2u, 3u}) {
    PipelineWorld world = routed_world({.limiting = stage});
    world.emit_all(true);
    world.run(3s);
    const std::size_t fresh = world.add_node(stage), first = stage == 2 ? 2 : 5;
    world.nodes[fresh].work = 2ms;
    for (std::size_t i = 0; i < fresh; ++i) {
      if (world.nodes[i].stage + 1 == stage) world.link(i, fresh);
      if (world.nodes[i].stage == stage + 1) world.link(fresh, i);
    }
    const std::string title = str("new in stage ", stage);
    const std::vector<double> shares =
        shares_of(run_windows(world, 5, 1s), fresh, {first, first + 1, first + 2}, title.c_str());
    for (const double share : shares) BOOST_TEST((share > 0.75 && share < 1.25), share);
  }
}

// A quick replica that stands still with all its credit used up does not hold back what a slow one could do.
BOOST_AUTO_TEST_CASE(nobody_waits_long_for_a_quick_replica_that_stands_still) {
  PipelineWorld world = routed_world({.replicas = {1, 2}, .limiting = 2});
  world.nodes[2].work = 20ms;
  world.emit_all(true);
  world.run(5s);
  const double before = done_by_node(world)[2];
  world.nodes[1].work = 100s;
  world.run(900ms);  // less than a transfer is waited for before it is given up
  BOOST_TEST(done_by_node(world)[2] - before > 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
