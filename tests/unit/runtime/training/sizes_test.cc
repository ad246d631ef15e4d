// Steps on small pictures: every recipe shrinks the pictures of its batches, and counts less work.
#include <boost/test/unit_test.hpp>

#include "runtime/training/model_trainer.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(sizes_of_steps)

namespace {

constexpr double rate = 0.05;
constexpr std::uint32_t steps = 3, small = 4, whole = 8;

// A network for the synthetic pictures, which have a channel of 8 x 8.
RunConfig config_of() {
  RunConfig config;
  config.model.family = "cnn";
  config.model.stage_channels = {4};
  config.model.groups = 2;
  config.model.hidden = {3};
  config.batch = 4;
  config.resolution = {{{0, small}, {0.5, whole}}};
  return config;
}

BuiltInModel built_of(const RunConfig& config) {
  return BuiltInModel::create(config, models::load_data(config.data).value(), {0, 1}, 7).value();
}

// The change of one step.
std::vector<float> made_by(const RunConfig& config, std::uint32_t size) {
  BuiltInModel built = built_of(config);
  const auto recipe = make_recipe(config, built).value();
  const std::vector<float> weights = models::to_floats(built.initial_weights(), built.grid_bits);
  std::vector<float> change(weights.size(), 9.0f);
  const Recipe::Made made = recipe->make({.rate = rate, .size = size}, {weights, {}}, change);
  if (made.rule)
    for (std::size_t i = 0; i < change.size(); ++i) change[i] = step_rule::sgd(*made.rule, change[i]);
  return change;
}

// The same by hand, on pictures of `size`.
std::vector<float> by_hand(const RunConfig& config, std::uint32_t size, std::uint32_t batches) {
  BuiltInModel built = built_of(config);
  const std::vector<float> weights = models::to_floats(built.initial_weights(), built.grid_bits);
  std::vector<float> change(weights.size(), 0.0f), seen(weights.size()), gradient(weights.size());
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = weights[i] + change[i];
    const models::Batch drawn = built.next_batch({.size = size});
    BOOST_TEST(drawn.x.size() == std::size_t{drawn.rows} * size * size);
    built.model->loss_and_gradient(seen, drawn, gradient);
    built.optimizer->step(gradient, rate, gradient, seen);
    for (std::size_t i = 0; i < change.size(); ++i) change[i] += gradient[i];
  }
  return change;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_recipe_learns_from_pictures_of_the_plan) {
  const RunConfig one = config_of();
  RunConfig local = one, racing = one;
  local.round_rules.local_steps = steps;
  racing.hogwild = 1;
  racing.hogwild_batches = steps;
  for (const std::uint32_t size : {small, whole}) {
    BOOST_TEST((made_by(one, size) == by_hand(one, size, 1)), "one batch of " << size);
    BOOST_TEST((made_by(local, size) == by_hand(one, size, steps)), "local steps of " << size);
    BOOST_TEST((made_by(racing, size) == by_hand(one, size, steps)), "racing, " << size);
  }
  BOOST_TEST((made_by(one, 0) == made_by(one, whole)));
  BOOST_TEST((made_by(one, small) != made_by(one, whole)));
}

BOOST_AUTO_TEST_CASE(a_trainer_knows_the_share_of_the_work) {
  const auto trainer = ModelTrainer::create(config_of(), models::load_data({}).value(), {0, 1}, 7).value();
  BOOST_TEST(trainer->share_of_work(0) == 1);
  BOOST_TEST(trainer->share_of_work(whole) == 1);
  const double convolution = 9 * 4, head = 4 * 4 * 4 * 3 + 3 * 10 + 3 + 10 + 0;  // by weights: a bias counts as one
  const double share = (small * small * convolution + head) / (whole * whole * convolution + head);
  BOOST_TEST(std::abs(trainer->share_of_work(small) - share) < 1e-9);
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_the_data_are_refused) {
  RunConfig config = config_of();
  config.resolution = {{{0, 4}, {0.5, 28}}};
  const auto made = BuiltInModel::create(config, models::load_data(config.data).value(), {0, 1}, 7);
  BOOST_REQUIRE(!made.ok());
  BOOST_TEST(made.error().text.find("data.resolution ends with 28 pixels, and the pictures have 8") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
