// Stages that exchange micro-batches: each counts once, whoever dies, lags or repeats; who gets how many.
#include "gossip/pipeline/pipeline.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/shortened.h"
#include "tests/unit/gossip/pipeline/pipeline_world.h"

namespace rumor::gossip::test {
namespace {

// Stops the sources and lets everything that is under way arrive.
void drain_pipeline(PipelineWorld& world) {
  world.emit_all(false);
  world.run(60s);
}

std::size_t in_steps(const PipelineWorld& world, std::uint32_t stage) {
  return world.counted(stage).size();
}

std::uint64_t pipeline_figure(const PipelineWorld& world, std::uint64_t PipelineFigures::*which) {
  std::uint64_t sum = 0;
  for (const auto& node : world.nodes) sum += node.pipeline->figures().*which;
  return sum;
}

std::size_t links_closed(const PipelineWorld& world) {
  std::size_t sum = 0;
  for (const auto& node : world.nodes) sum += node.closed.size();
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline)

BOOST_AUTO_TEST_CASE(a_step_has_the_same_micro_batches_in_every_stage) {
  for (const std::size_t stages : {2u, 3u, 5u}) {
    const bool overlap = stages == 3;
    PipelineWorld world({.replicas = std::vector<std::size_t>(stages, 1), .micro_batches = 6, .overlap = overlap});
    world.emit_all(true);
    world.run(2s);
    BOOST_TEST(world.nodes[0].steps.size() > 20u);
    const std::size_t steps = world.nodes.back().steps.size();
    BOOST_TEST(steps + 1 >= world.nodes[0].steps.size());
    for (const auto& node : world.nodes)
      for (std::size_t i = 0; i < std::min(steps, node.steps.size()); ++i)
        BOOST_TEST((node.steps[i] == world.nodes[0].steps[i]));
    BOOST_TEST(pipeline_figure(world, &PipelineFigures::dropped) == 0u);
    BOOST_TEST(links_closed(world) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(long_borders_travel_in_pieces) {
  PipelineWorld world({.micro_batches = 2, .border_bytes = 3 * limits::piece_bytes_max + 5});
  world.emit_all(true);
  world.run(1s);
  BOOST_TEST(world.nodes[0].steps.size() > 5u);
  BOOST_TEST(links_closed(world) == 0u);
}

BOOST_AUTO_TEST_CASE(every_micro_batch_counts_once_in_every_stage) {
  PipelineWorld world({.replicas = {2, 3, 2}, .micro_batches = 4});
  world.emit_all(true);
  world.run(5s);
  drain_pipeline(world);
  BOOST_TEST(in_steps(world, 1) > 500u);
  // Steps are full: at most three micro-batches of each replica wait for the next one.
  BOOST_TEST(in_steps(world, 2) + 3 * 3 >= in_steps(world, 1));
  BOOST_TEST(in_steps(world, 3) + 2 * 3 >= in_steps(world, 1));
  BOOST_TEST(pipeline_figure(world, &PipelineFigures::lost) == 0u);
}

// Three replicas of which one is four times as fast as another: the fast one has more, and all work.
BOOST_AUTO_TEST_CASE(quick_replicas_get_more) {
  PipelineWorld world({.replicas = {3, 3}, .micro_batches = 8, .window = 2});
  for (std::size_t i = 0; i < 3; ++i) world.nodes[i].work = 1ms;
  world.nodes[3].work = 4ms;
  world.nodes[4].work = 8ms;
  world.nodes[5].work = 16ms;
  world.emit_all(true);
  world.run(20s);
  const auto steps = [&](std::size_t i) { return world.nodes[i].steps.size(); };
  BOOST_TEST(steps(3) > steps(4));
  BOOST_TEST(steps(4) > steps(5));
  BOOST_TEST(steps(5) > 50u);
  // Together they could do 437.5 micro-batches a second. A source waits for its last answer before each step.
  BOOST_TEST(in_steps(world, 2) > 0.5 * 437.5 * 20);
}

// Five stages of one replica each, a step of 20 micro-batches. Without overlap a step has a bubble: each stage computes
// for 20 of 24 times. With it the first stage, which computes twice for each, hardly stands still.
BOOST_AUTO_TEST_CASE(steps_that_overlap_leave_no_bubble) {
  const auto busy = [](bool overlap) {
    PipelineWorld world({.replicas = {1, 1, 1, 1, 1}, .micro_batches = 20, .window = 8, .overlap = overlap});
    for (auto& node : world.nodes) node.work = 10ms;
    world.nodes.back().work = 20ms;  // forward and backward at once
    world.delay = 100us;
    world.emit_all(true);
    world.run(20s);
    return to_seconds(world.nodes[0].busy) / 20;
  };
  const double apart = busy(false), together = busy(true);
  BOOST_TEST_MESSAGE("the first stage computes " << apart << " of the time, with overlap " << together);
  BOOST_TEST(apart < 20.0 / 24);
  BOOST_TEST(together > 0.9);
}

BOOST_AUTO_TEST_CASE(a_dead_replica_costs_only_time) {
  PipelineWorld world({.replicas = {2, 3, 3}, .micro_batches = 4});
  world.emit_all(true);
  world.run(2s);
  world.kill(3);
  world.kill(6);
  world.run(1s);
  const std::size_t before = in_steps(world, 1);
  world.run(2s);
  BOOST_TEST(in_steps(world, 1) > before + 200);
  BOOST_TEST(pipeline_figure(world, &PipelineFigures::lost) > 0u);
}

BOOST_AUTO_TEST_CASE(without_an_upper_replica_the_lower_ones_wait_and_then_go_on) {
  PipelineWorld world({.replicas = {1, 1}, .micro_batches = 4});
  world.emit_all(true);
  world.run(1s);
  world.kill(1);
  world.run(5s);
  const std::size_t before = world.nodes[0].steps.size();
  world.run(5s);
  BOOST_TEST(world.nodes[0].steps.size() == before);
  BOOST_TEST(world.nodes[0].pipeline->held() <= 4u);
  const std::size_t fresh = world.add_node(2);
  world.link(0, fresh);
  world.run(1s);
  BOOST_TEST(world.nodes[0].steps.size() > before + 20);
}

// A replica that stands still: its micro-batches go to the other, and their gradients leave the sums above
// again.
BOOST_AUTO_TEST_CASE(a_replica_that_lags_is_given_up) {
  PipelineWorld world({.replicas = {2, 2, 1}, .micro_batches = 4});
  world.emit_all(true);
  world.run(2s);
  world.nodes[2].work = 30s;
  const std::size_t before = in_steps(world, 1);
  world.run(20s);
  BOOST_TEST(in_steps(world, 1) > before + 500);
  BOOST_TEST(pipeline_figure(world, &PipelineFigures::late) > 0u);
  world.nodes[2].work = 1ms;
  world.run(40s);
  const std::size_t own = world.nodes[2].steps.size();
  world.run(20s);
  BOOST_TEST(world.nodes[2].steps.size() > own);  // it is asked again
}

// Links break and come back at random, replicas die and are replaced: nothing counts twice (the world checks
// each step), and the pipeline goes on.
BOOST_AUTO_TEST_CASE(nothing_counts_twice_under_random_faults) {
  std::uint64_t again = 0, ahead = 0;
  for (std::uint64_t seed = 1; seed <= rumor::test::shortened(12); ++seed) {
    const bool overlap = seed % 2 == 0;
    PipelineWorld world({.replicas = {2, 3, 2, 2}, .micro_batches = 5, .window = 3, .overlap = overlap}, seed);
    Prng prng(seed);
    for (auto& node : world.nodes) node.work = Duration(prng.between(500, 20'000));
    world.emit_all(true);
    for (int fault = 0; fault < 60; ++fault) {
      world.run(Duration(prng.between(1'000, 400'000)));
      const auto lower = static_cast<std::size_t>(prng.below(world.nodes.size()));
      const auto upper = static_cast<std::size_t>(prng.below(world.nodes.size()));
      if (const auto link = world.link_between(lower, upper)) {
        world.cut(*link, 200ms);
        world.run(1ms);
        world.link(lower, upper);
      }
      if (fault % 15 != 14) continue;
      const std::uint32_t stage = world.nodes[lower].stage;
      if (stage == 1 || !world.nodes[lower].alive) continue;
      world.kill(lower);
      const std::size_t fresh = world.add_node(stage);
      for (std::size_t i = 0; i < fresh; ++i) {
        if (world.nodes[i].stage + 1 == stage) world.link(i, fresh);
        if (world.nodes[i].stage == stage + 1) world.link(fresh, i);
      }
    }
    const std::size_t before = in_steps(world, 4);
    world.run(20s);
    BOOST_TEST(in_steps(world, 4) > before + 100, "seed " << seed);
    again += pipeline_figure(world, &PipelineFigures::sums_again);
    for (const auto& node : world.nodes) ahead += node.ahead;
    BOOST_TEST(links_closed(world) == 0u);
  }
  BOOST_TEST(again > 0u);
  BOOST_TEST(ahead > 0u);
}

BOOST_AUTO_TEST_CASE(a_border_that_cannot_be_read_closes_its_link_and_goes_elsewhere) {
  PipelineWorld world({.replicas = {1, 2, 1}, .micro_batches = 3});
  bool spoilt = false;
  world.is_unreadable = [&](const Work& work) {
    if (spoilt || work.kind != Work::Kind::backward || work.name.number < 20) return false;
    return spoilt = true;
  };
  world.emit_all(true);
  world.run(5s);
  BOOST_TEST(spoilt);
  BOOST_TEST(links_closed(world) == 1u);
  BOOST_TEST(in_steps(world, 1) > 200u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
