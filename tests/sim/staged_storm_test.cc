// A model in stages under drawn faults: all are trained and equal afterwards, no row counts twice, and a seed repeats
// itself.
#include "runtime/sim/storm/staged_storm.h"

#include "tests/shortened.h"
#include "tests/sim/staged_support.h"

using namespace rumor;

namespace {

sim::StagedStormResult staged_under(const sim::StormRequest& request, std::size_t nodes, std::uint64_t samples = 4000) {
  sim::ClusterOptions options = test::lan(nodes, request.seed);
  options.curve_points = 1;
  RunConfig config = test::in_stages(test::staged_gpt(samples), 3, "f32");
  config.pipeline.overlap = request.seed % 2 == 0;
  config.pipeline.recompute = request.seed % 3 == 0;
  auto all = sim::run_staged_storm(config, test::staged_text(), options, request, "rumor sim text-gpt", nullptr);
  BOOST_REQUIRE_MESSAGE(all.ok(), (all.ok() ? "" : all.error().text));
  return std::move(*all);
}

sim::StormRequest staged_seed(std::uint64_t seed) {
  sim::StormRequest request;
  request.seed = seed;
  return request;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(staged_storm)

BOOST_AUTO_TEST_CASE(all_stages_are_trained_and_equal_in_the_end) {
  std::uint64_t restarts = 0, partitions = 0, sent_again = 0;
  const std::uint64_t seeds = test::shortened(8);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const sim::StagedStormResult all = staged_under(staged_seed(seed), 6 + seed % 4);
    const auto& broken = all.report.violation;
    BOOST_TEST_CONTEXT(all.report.replay << ": " << (broken ? broken->invariant + " " + broken->text : "")) {
      BOOST_REQUIRE(!broken);
      BOOST_TEST(all.result.samples >= 4000u);
      for (const sim::StageResult& stage : all.result.stages) {
        BOOST_TEST(stage.run.identical);
        BOOST_TEST(stage.run.doubled == 0u);
        BOOST_TEST(stage.counted > 0u);
      }
    }
    restarts += all.result.restarts;
    partitions += all.result.partitions;
    sent_again += all.result.figures.lost + all.result.figures.refused + all.result.figures.late;
  }
  if (seeds < 8) return;
  BOOST_TEST(restarts > 4u);
  BOOST_TEST(partitions > 4u);
  BOOST_TEST(sent_again > 0u);
}

BOOST_AUTO_TEST_CASE(one_seed_one_trace_and_no_faults_that_stages_lack) {
  sim::StormRequest request = staged_seed(3);
  request.forced = sim::fault_bit(sim::FaultKind::floods) | sim::fault_bit(sim::FaultKind::crash);
  const sim::StagedStormResult first = staged_under(request, 6, 1500), second = staged_under(request, 6, 1500);
  BOOST_TEST(first.report.trace == second.report.trace);
  BOOST_TEST(first.report.trace != staged_under(staged_seed(4), 6, 1500).report.trace);
  BOOST_TEST((first.report.enabled & sim::fault_bit(sim::FaultKind::floods)) == 0u);
  BOOST_TEST((first.report.enabled & sim::fault_bit(sim::FaultKind::crash)) != 0u);
  BOOST_TEST(first.report.replay.find("rumor sim text-gpt --faults storm --sim-seed 3") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
