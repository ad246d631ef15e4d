// Codistillation: the mean of predictions by hand, and whole runs.
#include <cmath>

#include "models/evaluation.h"
#include "runtime/sim/methods/ensemble.h"
#include "tests/sim/support.h"

using namespace rumor;
using test::run;

namespace {

RunConfig codistill_run() {
  RunConfig config = test::small_run(16'000);
  config.mode = "codistill";
  config.rate = 0.3;
  config.density = 0.2;
  config.neighbour_rules.refresh_every = 5;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(codistill)

// One input and two classes, no hidden layer: the logits are w x + b, so a bias of ln 3 makes it 3 : 1.
BOOST_AUTO_TEST_CASE(models_answer_with_the_mean_of_their_probabilities) {
  models::ModelConfig shape;
  shape.hidden = {};
  shape.inputs = 1;
  shape.classes = 2;
  const auto model = models::make_model(shape).value();
  const float odds = std::log(3.0f);
  const std::vector<float> first = {0, 0, odds, 0}, second = {0, 0, 0, 0}, x = {1};
  const std::vector<std::uint8_t> label = {0};
  std::vector<float> mean;
  const std::span<const float> both[] = {first, second};
  BOOST_TEST(sim::mean_prediction(*model, both, {x, label, 1}, mean));
  BOOST_TEST(mean[0] == 0.625f, boost::test_tools::tolerance(1e-6f));
  BOOST_TEST(mean[1] == 0.375f, boost::test_tools::tolerance(1e-6f));
  BOOST_TEST(!sim::mean_prediction(*model, {}, {x, label, 1}, mean));
}

// One model alone is an ensemble like any other: its own evaluation.
BOOST_AUTO_TEST_CASE(an_ensemble_of_one_is_that_model) {
  const auto data = test::small_data();
  models::ModelConfig shape = codistill_run().model;
  data->describe(shape);
  const auto model = models::make_model(shape).value();
  const auto weights = models::to_floats(models::initial_weights(*model, 3, 24), 24);
  const std::span<const float> one[] = {weights};
  const models::Evaluation own = evaluate_on_test(*model, *data, weights, UINT32_MAX);
  const models::Evaluation together = sim::evaluate_ensemble(*model, *data, one);
  BOOST_TEST(together.loss == own.loss, boost::test_tools::tolerance(1e-5));
  BOOST_TEST(*together.accuracy == *own.accuracy, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(pupils_learn_from_each_other) {
  const sim::SimResult first = run(codistill_run(), test::lan(4)), again = run(codistill_run(), test::lan(4));
  BOOST_TEST(first.trace_hash == again.trace_hash);
  BOOST_TEST(first.loss < 0.6 * first.curve.front().loss);
  BOOST_TEST(*first.together_loss < first.loss);
  BOOST_TEST(first.silent_fraction == 0.8, boost::test_tools::tolerance(0.02));
  RunConfig alone = codistill_run();
  alone.neighbour_rules.agreement = 0;
  const sim::SimResult apart = run(alone, test::lan(4));
  BOOST_TEST(first.disagreement < apart.disagreement);
  // Two teachers, from a tenth of the run on: steps of 5/3 the time for nine tenths.
  BOOST_TEST(first.virtual_seconds == 0.020 * 250 * (0.1 + 0.9 * 5 / 3), boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(pupils_come_and_go) {
  sim::ClusterOptions options = test::lan(6);
  options.planned_faults = {{sim::PlannedFault::Kind::kill, 400ms, 200ms, 900ms, {0, 1, 2, 3}}};
  const sim::SimResult r = run(codistill_run(), options);
  BOOST_TEST(r.loss < 0.7 * r.curve.front().loss);
  BOOST_TEST(r.samples >= 16'000u);
}

BOOST_AUTO_TEST_SUITE_END()
