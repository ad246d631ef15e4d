// Recipes: local steps are mini-batches one after another, to the last bit, and so are those of one racing worker.
#include "runtime/training/recipe.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(recipe)

namespace {

constexpr double rate = 0.05;
constexpr std::uint32_t steps = 5;

RunConfig config_of(const std::string& optimizer) {
  RunConfig config;
  config.model.hidden = {3};
  config.batch = 4;
  config.optimizer.kind = optimizer;
  config.optimizer.clip = 0.5;
  return config;
}

RunConfig with_local_steps(RunConfig config) {
  config.round_rules.local_steps = steps;
  return config;
}

RunConfig with_one_worker(RunConfig config) {
  config.hogwild = 1;
  config.hogwild_batches = steps;
  return config;
}

BuiltInModel built_of(const RunConfig& config) {
  return BuiltInModel::create(config, models::load_data(config.data).value(), {0, 1}, 7).value();
}

std::vector<float> start_of(const BuiltInModel& built) {
  return models::to_floats(built.initial_weights(), built.grid_bits);
}

// Some parameters have a change that is not sent yet.
std::vector<float> residual_of(const BuiltInModel& built) {
  std::vector<float> residual(built.layout().params(), 0.0f);
  for (std::size_t i = 0; i < residual.size(); i += 3) residual[i] = i % 2 == 0 ? 0.01f : -0.02f;
  return residual;
}

// Losses, and the weights, after three steps of the recipe.
struct End {
  std::vector<float> weights, losses;
  bool operator==(const End&) const = default;
};

End end_of(const RunConfig& config, std::size_t peers = 1) {
  BuiltInModel built = built_of(config);
  const auto recipe = make_recipe(config, built).value();
  End end{start_of(built), {}};
  std::vector<float> change(end.weights.size(), 9.0f);
  const std::vector<float> residual = residual_of(built);
  for (int step = 0; step < 3; ++step) {
    const Recipe::Made made = recipe->make({.rate = rate, .peers = peers}, {end.weights, residual}, change);
    BOOST_TEST(!made.rule.has_value());
    for (std::size_t i = 0; i < change.size(); ++i) end.weights[i] += change[i];
    end.losses.push_back(static_cast<float>(made.loss));
  }
  return end;
}

// The same by hand. Muon's private copy has the residual.
End end_of_a_loop(const RunConfig& config, float ahead = 1) {
  BuiltInModel built = built_of(config);
  End end{start_of(built), {}};
  std::vector<float> residual = residual_of(built);
  if (config.optimizer.kind != "muon") residual.assign(residual.size(), 0.0f);
  std::vector<float> delta(end.weights.size());
  for (int step = 0; step < 3; ++step) {
    std::vector<float> change(end.weights.size(), 0.0f), seen = end.weights;
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] += residual[i];
    double loss = 0;
    for (std::uint32_t b = 0; b < steps; ++b) {
      loss += built.model->loss_and_gradient(seen, built.sampler->next(), delta);
      models::clip_by_norm(delta, config.optimizer.clip);
      built.optimizer->step(delta, rate, delta, seen);
      for (std::size_t i = 0; i < change.size(); ++i) {
        change[i] += delta[i];
        seen[i] = end.weights[i] + residual[i] + ahead * change[i];
      }
    }
    for (std::size_t i = 0; i < change.size(); ++i) end.weights[i] += change[i];
    end.losses.push_back(static_cast<float>(loss / steps));
  }
  return end;
}

}  // namespace

BOOST_AUTO_TEST_CASE(local_steps_and_one_worker_are_mini_batches_one_after_another) {
  for (const char* kind : {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw"}) {
    const RunConfig config = config_of(kind);
    const End want = end_of_a_loop(with_local_steps(config));
    BOOST_TEST((end_of(with_local_steps(config)) == want), kind);
    BOOST_TEST((end_of(with_one_worker(config)) == want), kind);
  }
}

// With others that train: a peer's view moves as far as all of them are expected to, where the optimizer bears it.
BOOST_AUTO_TEST_CASE(local_steps_of_muon_look_ahead_of_their_own_change) {
  for (const bool muon : {false, true}) {
    RunConfig config = with_local_steps(config_of(muon ? "muon" : "rmsprop"));
    config.model.hidden = {6, 5};
    const End among = end_of(config, 3);
    BOOST_TEST((among == end_of_a_loop(config, muon ? 3.0f : 1.0f)));
    BOOST_TEST((among.weights != end_of(config).weights) == muon);
  }
}

BOOST_AUTO_TEST_CASE(muon_steps_whole_matrices_and_does_not_race) {
  RunConfig config = config_of("muon");
  config.model.hidden = {6, 5};
  const RunConfig local = with_local_steps(config);
  BOOST_TEST((end_of(local) == end_of_a_loop(local)));
  const End one = end_of(config);  // the recipe of one batch, which leaves no rule to the compressor
  BOOST_TEST(one.losses.size() == 3u);
  const RunConfig racing = with_one_worker(config);
  BuiltInModel built = built_of(racing);
  const auto refused = make_recipe(racing, built);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text.find("optimizer.hogwild") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(one_batch_leaves_the_optimizers_step_to_the_compressor) {
  const RunConfig config = config_of("sgd");
  BuiltInModel built = built_of(config), again = built_of(config);
  const auto recipe = make_recipe(config, built).value();
  const std::vector<float> weights = start_of(built);
  std::vector<float> gradient(weights.size()), want(weights.size());
  const Recipe::Made made = recipe->make({.rate = rate}, {weights, residual_of(built)}, gradient);
  BOOST_TEST(made.loss == again.model->loss_and_gradient(weights, again.sampler->next(), want));
  models::clip_by_norm(want, config.optimizer.clip);
  BOOST_TEST((gradient == want));
  BOOST_REQUIRE(made.rule.has_value());
  BOOST_TEST((made.rule->kind == StepRule::Kind::sgd));
}

// Local steps take two floats a parameter, and no models of workers.
BOOST_AUTO_TEST_CASE(the_memory_of_a_recipe_is_counted_where_it_belongs) {
  const auto memory_of = [](const RunConfig& config) {
    BuiltInModel built = built_of(config);
    const auto recipe = make_recipe(config, built).value();
    std::vector<float> weights = start_of(built), change(weights.size());
    recipe->make({.rate = rate}, {weights, residual_of(built)}, change);
    MemoryUse use;
    recipe->add_memory(use);
    return use;
  };
  const MemoryUse one = memory_of(config_of("sgd")), local = memory_of(with_local_steps(config_of("sgd"))),
                  racing = memory_of(with_one_worker(config_of("sgd")));
  BOOST_TEST(one.of_parameters() == 0u);
  BOOST_TEST(local.hogwild == 0u);
  BOOST_TEST(local.view > 0u);
  BOOST_TEST(local.view == local.gradient);
  BOOST_TEST(racing.hogwild > local.of_parameters());
}

BOOST_AUTO_TEST_SUITE_END()
