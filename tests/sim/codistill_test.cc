// Codistillation: whole peers in virtual time.
#include "tests/sim/support.h"

using namespace rumor;
using test::run;

namespace {

RunConfig codistill_run(std::uint64_t samples = 16'000) {
  RunConfig config = test::small_run(samples);
  config.mode = "codistill";
  config.rate = 0.3;
  config.density = 0.2;
  config.neighbour_rules.refresh_every = 5;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(codistill)

BOOST_AUTO_TEST_CASE(pupils_learn_from_each_other) {
  const sim::SimResult first = run(codistill_run(), test::lan(4)), again = run(codistill_run(), test::lan(4));
  BOOST_TEST(first.trace_hash == again.trace_hash);
  BOOST_TEST(first.loss < 0.6 * first.curve.front().loss);
  BOOST_TEST(*first.together_loss < first.loss);
  BOOST_TEST(first.silent_fraction == 0.8, boost::test_tools::tolerance(0.02));
  BOOST_TEST(first.guarantee.find("what its teachers predict") != std::string::npos);
  BOOST_TEST(!first.identical);
  RunConfig alone = codistill_run();
  alone.neighbour_rules.agreement = 0;
  BOOST_TEST(first.disagreement < run(alone, test::lan(4)).disagreement);
}

// Teachers do not make the steps larger: a learning rate that is right without them is right with them.
BOOST_AUTO_TEST_CASE(heavy_teachers_do_not_raise_the_learning_rate) {
  RunConfig config = codistill_run();
  config.neighbour_rules.agreement = 20;
  const sim::SimResult r = run(config, test::lan(4));
  BOOST_TEST(r.loss < 0.85 * r.curve.front().loss);
}

// Two teachers, from a tenth of the run on: steps of 5/3 the time for nine tenths.
BOOST_AUTO_TEST_CASE(teachers_are_asked_from_a_tenth_of_the_run_on_and_take_a_third_of_a_step_each) {
  const auto seconds = [](std::uint32_t teachers, std::uint64_t samples) {
    RunConfig config = codistill_run(samples);
    config.neighbour_rules.teachers = teachers;
    return run(config, test::lan(4)).virtual_seconds;
  };
  for (const std::uint32_t teachers : {1u, 2u}) {
    // The beginning and the end take equally long in runs of different length, so they cancel.
    const double got = seconds(teachers, 48'000) - seconds(teachers, 16'000);
    BOOST_TEST(got == 0.020 * 500 * (1 + 0.9 * teachers / 3), boost::test_tools::tolerance(0.015));
  }
}

BOOST_AUTO_TEST_CASE(pupils_come_and_go) {
  using Kind = sim::PlannedFault::Kind;
  sim::ClusterOptions options = test::lan(6);
  options.planned_faults = {{Kind::kill, 3800ms, 400ms, 0ms, {0, 1, 2, 3}}};
  const sim::SimResult r = run(codistill_run(), options);
  BOOST_TEST(r.restarts == 4u);
  BOOST_TEST(r.loss < 0.7 * r.curve.front().loss);
  BOOST_TEST(r.samples >= 16'000u);
}

BOOST_AUTO_TEST_CASE(what_is_held_of_a_teacher_is_equal_to_the_bit) {
  auto cluster = test::make_cluster(codistill_run(8'000), test::lan(6));
  test::finish(*cluster);
  cluster->run_until(cluster->now() + 15s);
  test::check_held_copies(*cluster, 6);
}

BOOST_AUTO_TEST_SUITE_END()
