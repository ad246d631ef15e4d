// Faults strike a model in stages: training goes on, replicas of a stage are equal, and no row counts twice.
#include "tests/shortened.h"
#include "tests/sim/staged_support.h"
#include "tests/unit/gossip/pipeline/pipeline_world.h"

using namespace rumor;

namespace {

sim::ClusterOptions struck(std::size_t nodes, const std::string& plan, std::uint64_t seed = 1) {
  sim::ClusterOptions options = test::lan(nodes, seed);
  options.curve_points = 1;
  if (!plan.empty()) options.planned_faults = sim::parse_fault_plan(plan, "plan.toml", nodes).value();
  return options;
}

RunConfig short_run(std::uint64_t samples = 4000) { return test::in_stages(test::staged_gpt(samples), 3, "f32"); }

std::unique_ptr<sim::StagedRun> begun(const RunConfig& config, const sim::ClusterOptions& options) {
  auto run = sim::StagedRun::create(config, test::staged_text(), options);
  BOOST_REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text));
  return std::move(*run);
}

sim::StagedResult ended(sim::StagedRun& run) {
  auto result = run.run(nullptr);
  BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
  return std::move(*result);
}

void check_equal(const sim::StagedResult& result) {
  for (const sim::StageResult& stage : result.stages) {
    BOOST_TEST(stage.run.identical);
    BOOST_TEST(stage.run.lost + stage.run.undelivered == 0u);
    BOOST_TEST(stage.run.doubled == 0u);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(staged_faults)

BOOST_AUTO_TEST_CASE(the_books_name_rows_that_count_twice_or_only_above) {
  gossip::test::PipelineWorld world({.replicas = {1, 1}});
  world.emit_all(true);
  sim::CountedBooks books(2);
  const gossip::Pipeline& source = *world.nodes[0].pipeline;
  for (int i = 0; i < 1000 && source.figures().steps == 0; ++i) world.run(100us);
  BOOST_REQUIRE(source.figures().steps == 1u);
  BOOST_TEST(!books.read(0, 0, 1, source));
  BOOST_TEST(!books.read(0, 0, 1, source));
  BOOST_TEST(books.counted(0) == 4u);
  BOOST_TEST(books.missing(1) == 4u);
  // The same rows from another node, and from another life of the same one.
  BOOST_TEST(books.read(0, 2, 1, source).value().invariant == "P1");
  BOOST_TEST(books.read(0, 0, 2, source).value().text.find("stage 1 counts micro-batch ") == 0u);
  BOOST_TEST(sim::CountedBooks(2).read(1, 1, 1, source).value().invariant == "P2");
}

BOOST_AUTO_TEST_CASE(killed_replicas_come_back_and_catch_up) {
  const auto run = begun(short_run(), struck(6, R"(
    [[fault]]
    kind = "kill"
    at_s = 0.8
    lasts_s = 0.4
    nodes = [3]         # a source: empty
    [[fault]]
    kind = "kill"
    at_s = 1.2
    lasts_s = 0.4
    nodes = [1, 5]      # of stages 2 and 3: with its disk
    keeps_disk = true
  )"));
  run->run_until(TimePoint{1s});
  BOOST_TEST(run->peers().node(3) == nullptr);
  const std::uint64_t before = run->peers().samples();
  run->run_until(TimePoint{1500ms});
  BOOST_TEST(run->peers().samples() > before + 200);  // the others never stopped
  const sim::StagedResult result = ended(*run);
  BOOST_TEST(result.restarts == 3u);
  check_equal(result);
  for (const sim::StageResult& stage : result.stages) BOOST_TEST(stage.counted > 900u);
}

// The weights of stage 2 are nowhere but on a disk meanwhile.
BOOST_AUTO_TEST_CASE(a_run_waits_for_a_stage_without_a_peer_and_goes_on_when_one_comes) {
  const auto run = begun(short_run(), struck(3, R"(
    [[fault]]
    kind = "kill"
    at_s = 1.5
    lasts_s = 20
    nodes = [1]
    keeps_disk = true
  )"));
  run->run_until(TimePoint{2s});
  const std::uint64_t before = run->peers().samples();
  BOOST_TEST(before > 300u);
  run->run_until(TimePoint{21s});
  BOOST_TEST(run->peers().samples() == before);
  BOOST_TEST(run->peers().node(0)->status(run->now()).waiting_for.find("no peer of stage 2 is linked") == 0u);
  const sim::StagedResult result = ended(*run);
  BOOST_TEST(result.restarts == 1u);
  BOOST_TEST(result.stages[0].run.samples >= 4000u);
  check_equal(result);
}

BOOST_AUTO_TEST_CASE(the_last_replica_of_a_stage_is_not_killed_without_its_disk) {
  const auto run = begun(short_run(2000), struck(4, R"(
    [[fault]]
    kind = "kill"
    at_s = 0.8
    lasts_s = 0.1
    nodes = [0, 1, 2]   # only stage 1 has another replica
  )"));
  const sim::StagedResult result = ended(*run);
  BOOST_TEST(result.restarts == 1u);
  check_equal(result);
}

BOOST_AUTO_TEST_CASE(joiners_partitions_resets_and_slow_peers) {
  sim::ClusterOptions options = struck(9, R"(
    [[fault]]
    kind = "kill"       # joins late
    at_s = 0
    lasts_s = 0.9
    nodes = [7, 8]
    [[fault]]
    kind = "partition"  # a whole pipeline on either side
    at_s = 1.2
    lasts_s = 0.5
    nodes = [0, 4, 8]
    [[fault]]
    kind = "partition"  # a side without stages 1 and 3
    at_s = 2
    lasts_s = 0.5
    nodes = [1, 4]
    [[fault]]
    kind = "reset"
    at_s = 1
    nodes = [2, 3]
    every_s = 0.2
  )");
  options.step_factors = {1, 1, 1, 1, 4};
  const auto run = begun(short_run(12000), options);
  const sim::StagedResult result = ended(*run);
  BOOST_TEST(result.training_seconds > 3);  // all parts meet again before the end
  BOOST_TEST(result.partitions == 2u);
  BOOST_TEST(result.link_resets > 8u);
  BOOST_TEST(result.figures.lost > 0u);
  check_equal(result);
  for (std::size_t i = 0; i < 9; ++i)
    BOOST_TEST(run->peers().node(static_cast<sim::HostId>(i))->pipeline()->figures().counted > 0u);
}

// The others train the rest of the run and are done. Nobody answers its last micro-batches then.
BOOST_AUTO_TEST_CASE(a_source_that_was_parted_until_the_end_ends_with_the_run) {
  const auto run = begun(short_run(), struck(7, R"(
    [[fault]]
    kind = "partition"
    at_s = 1.2
    lasts_s = 20
    nodes = [6]
  )"));
  const sim::StagedResult result = ended(*run);
  BOOST_TEST(result.virtual_seconds < 60);
  check_equal(result);
}

BOOST_AUTO_TEST_CASE(light_faults_over_many_seeds) {
  std::uint64_t restarts = 0, resets = 0;
  for (std::uint64_t seed = 1; seed <= test::shortened(10); ++seed) {
    sim::ClusterOptions options = struck(6 + seed % 3, "", seed);
    options.light_faults = true;
    BOOST_TEST_CONTEXT("seed " << seed) {
      const auto run = begun(short_run(6000), options);
      const sim::StagedResult result = ended(*run);
      restarts += result.restarts;
      resets += result.link_resets;
      // A killed node loses updates that it had published and no peer had received.
      for (const sim::StageResult& stage : result.stages)
        BOOST_TEST((stage.run.identical || stage.run.lost + stage.run.undelivered <= 4 * result.restarts));
    }
  }
  BOOST_TEST(resets > 0u);
  if (test::shortened(10) == 10) BOOST_TEST(restarts > 0u);
}

BOOST_AUTO_TEST_CASE(disks_of_an_ordinary_run_are_refused) {
  const auto refused = sim::simulate(test::small_run(), test::small_data(), struck(4, R"(
    [[fault]]
    kind = "kill"
    at_s = 1
    lasts_s = 1
    nodes = [1]
    keeps_disk = true
  )"), nullptr);
  BOOST_TEST(refused.error().text.find("only for runs with stages") != std::string::npos);
  const auto wrong = sim::parse_fault_plan("[[fault]]\nkind = \"reset\"\nat_s = 1\nnodes = [1]\nkeeps_disk = true\n",
                                           "plan.toml", 4);
  BOOST_TEST(wrong.error().text.find("keeps_disk says how a killed node comes back") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
