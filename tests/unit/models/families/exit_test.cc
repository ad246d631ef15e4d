// Exits of parts: their tensors, and the gradient of all losses together.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/families/language_checks.h"

namespace rumor::models {
namespace {

ModelConfig mlp_with_exits() {
  ModelConfig config;
  config.inputs = 12;
  config.classes = 4;
  config.hidden = {9, 7};
  return config;
}

ModelConfig cnn_with_exits() {
  ModelConfig config;
  config.family = "cnn";
  config.channels = 2;
  config.height = 20;
  config.width = 12;  // 10 x 6 and 5 x 3 at the exits, so cells are uneven
  config.inputs = 2 * 20 * 12;
  config.classes = 3;
  config.stage_channels = {4, 8};
  config.groups = 4;
  config.hidden = {10};
  return config;
}

// A model of three units in three parts, the first two with exits.
class ExitChain {
 public:
  static constexpr double weights[] = {0.3, 0.7};

  explicit ExitChain(const ModelConfig& config) : config_(config) {
    for (std::uint32_t stage = 1; stage <= 3; ++stage) {
      ModelConfig part = config;
      part.units = {stage - 1, stage};
      if (stage < 3) part.exit = {stage, weights[stage - 1]};
      models.push_back(std::move(make_model(part)).value());
      Prng prng(stage);
      params.push_back(test::draw(prng, models.back()->layout().params(), 0.4));
    }
    Prng prng(7);
    x_ = test::draw(prng, rows * std::size_t{config.inputs});
    for (std::uint32_t i = 0; i < rows; ++i) label_.push_back(static_cast<std::uint8_t>(prng.below(config.classes)));
  }

  // The sum of the losses, each with its weight, from the probabilities of the exits and of the head.
  double loss() {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      border_[i].assign(rows * models[i]->border_floats().above, std::nanf(""));
      models[i]->forward(params[i], batch(), below(i), border_[i]);
      std::vector<float> probability(rows * std::size_t{config_.classes});
      models[i]->predict_exit(probability);
      double mean = 0;
      for (std::uint32_t row = 0; row < rows; ++row)
        mean -= std::log(static_cast<double>(probability[row * config_.classes + label_[row]])) / rows;
      sum += i < 2 ? weights[i] * mean : mean;
    }
    return sum;
  }

  std::vector<std::vector<float>> gradients() {
    loss();
    std::vector<std::vector<float>> all(3);
    std::vector<float> above;
    for (std::size_t i = 3; i-- > 0;) {
      all[i].assign(params[i].size(), std::nanf(""));
      std::vector<float> change(rows * models[i]->border_floats().below, std::nanf(""));
      const float loss = models[i]->backward(params[i], batch(), below(i), above, all[i], change);
      BOOST_TEST((i == 2 ? loss > 0 : loss == 0));
      above = change;
    }
    return all;
  }

  static constexpr std::uint32_t rows = 5;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::vector<float>> params;

 private:
  Batch batch() const { return {x_, label_, rows}; }
  std::span<const float> below(std::size_t i) const {
    if (i == 0) return {};
    return border_[i - 1];
  }

  ModelConfig config_;
  std::vector<float> x_;
  std::vector<std::uint8_t> label_;
  std::vector<float> border_[3];
};

// Each part by itself: the loss of all exits against its parameters, along drawn directions.
void check_exit_gradient(const ModelConfig& config) {
  ExitChain chain(config);
  const auto gradients = chain.gradients();
  for (std::size_t part = 0; part < 3; ++part) {
    const std::vector<float> before = chain.params[part];
    Prng prng(20 + part);
    for (int direction = 0; direction < 5; ++direction) {
      const std::vector<float> way = test::draw(prng, before.size());
      double loss[2];
      for (int side = 0; side < 2; ++side) {
        for (std::size_t i = 0; i < before.size(); ++i)
          chain.params[part][i] = before[i] + (side == 0 ? 1e-3f : -1e-3f) * way[i];
        loss[side] = chain.loss();
      }
      chain.params[part] = before;
      const double slope = (loss[0] - loss[1]) / 2e-3, expected = test::dot(gradients[part], way);
      BOOST_TEST(std::abs(slope - expected) < 1e-2 * (1 + std::abs(expected)),
                 "part " << part << ": " << slope << " != " << expected);
    }
  }
}

using Sides = std::pair<std::uint32_t, std::uint32_t>;  // height, width

// The cell of a pixel, where `sides` are cut into `cells`.
std::size_t cell_of(Sides sides, Sides cells, std::size_t pixel) {
  const auto place = [](std::size_t at, std::uint32_t side, std::uint32_t count) {
    std::uint32_t cell = 0;
    while (at >= (cell + 1) * side / count) ++cell;
    return cell;
  };
  return place(pixel / sides.second, sides.first, cells.first) * cells.second +
         place(pixel % sides.second, sides.second, cells.second);
}

// The first part of a CNN with an exit against the one without, which is given the sum of the change from above and of
// the exit's, computed here from the probabilities. `border`: the sides of its pictures.
void check_exit_of_cnn(Sides picture, Sides border, Sides cells) {
  constexpr std::uint32_t rows = 3, channels = 4;
  ModelConfig config = cnn_with_exits();
  config.height = picture.first, config.width = picture.second;
  config.inputs = 2 * picture.first * picture.second;
  config.units = {0, 1};
  const auto without = std::move(make_model(config)).value();
  config.exit = {1, 0.7};
  const auto with = std::move(make_model(config)).value();
  Prng prng(5);
  const auto params = test::draw(prng, with->layout().params(), 0.4), x = test::draw(prng, rows * config.inputs);
  const std::vector<std::uint8_t> label = {2, 0, 1};
  const Batch batch{x, label, rows};
  const std::size_t pixels = std::size_t{border.first} * border.second, seen = channels * cells.first * cells.second;
  BOOST_TEST_REQUIRE(without->border_floats().above == channels * pixels);
  std::vector<float> above(rows * channels * pixels), probability(rows * config.classes);
  const auto from_above = test::draw(prng, static_cast<long>(above.size()));
  with->forward(params, batch, {}, above);
  with->predict_exit(probability);

  const std::uint32_t body = without->layout().params();
  std::vector<double> weight_gradient(config.classes * seen), means(rows * seen), counts(cells.first * cells.second);
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) ++counts[cell_of(border, cells, pixel)];
  const auto input_of = [&](std::size_t at) {  // of the exit, for a value of the border
    return at / pixels * counts.size() + cell_of(border, cells, at % pixels);
  };
  for (std::size_t at = 0; at < above.size(); ++at)
    means[input_of(at)] += static_cast<double>(above[at]) / counts[cell_of(border, cells, at % pixels)];
  std::vector<float> sum = from_above;
  for (std::size_t c = 0; c < config.classes; ++c) {
    const auto change = [&](std::size_t row) {
      return 0.7 * (static_cast<double>(probability[row * config.classes + c]) - (label[row] == c)) / rows;
    };
    for (std::size_t i = 0; i < means.size(); ++i) weight_gradient[c * seen + i % seen] += change(i / seen) * means[i];
    for (std::size_t at = 0; at < sum.size(); ++at) {
      const std::size_t input = input_of(at);
      sum[at] += static_cast<float>(change(input / seen) * static_cast<double>(params[body + c * seen + input % seen]) /
                                    counts[cell_of(border, cells, at % pixels)]);
    }
  }
  std::vector<float> gradient(params.size(), std::nanf("")), expected(body);
  with->backward(params, batch, {}, from_above, gradient, {});
  const std::span<const float> body_params = std::span(params).first(body);
  without->forward(body_params, batch, {}, above);
  without->backward(body_params, batch, {}, sum, expected, {});
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-5 * (1 + std::abs(b)); };
  for (std::size_t i = 0; i < body; ++i) BOOST_TEST(near(double{gradient[i]}, double{expected[i]}), "parameter " << i);
  for (std::size_t i = 0; i < weight_gradient.size(); ++i)
    BOOST_TEST(near(double{gradient[body + i]}, weight_gradient[i]), "weight " << i << " of the exit");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exits)

BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_all_losses_of_an_mlp) { check_exit_gradient(mlp_with_exits()); }

// Differences are too coarse here: the largest of a window has kinks everywhere.
BOOST_AUTO_TEST_CASE(a_cnn_goes_on_down_with_the_sum_of_both_changes) {
  check_exit_of_cnn({20, 12}, {10, 6}, {4, 4});
  check_exit_of_cnn({6, 14}, {3, 7}, {3, 4});
}

BOOST_AUTO_TEST_CASE(an_exit_adds_its_tensors_behind_those_of_the_part_and_changes_no_other_bit) {
  for (const ModelConfig& config : {mlp_with_exits(), cnn_with_exits()}) {
    ModelConfig plain = config, exited = config;
    plain.units = exited.units = {1, 2};
    exited.exit = {2, 0.5};
    const auto without = std::move(make_model(plain)).value(), with = std::move(make_model(exited)).value();
    const auto& tensors = with->layout().tensors();
    const std::size_t own = without->layout().tensors().size(), width = config.family == "mlp" ? 7 : 8 * 4 * 3;
    BOOST_TEST_REQUIRE(tensors.size() == own + 2);
    BOOST_TEST(describe(tensors[own]) == "exit.2.weight (" + std::to_string(config.classes) + " x " +
                                             std::to_string(width) + ")");
    BOOST_TEST(tensors[own + 1].name == "exit.2.bias");
    BOOST_TEST(with->hidden_matrices(tensors[own]) == 0u);
    BOOST_TEST(with->hidden_matrices(tensors[0]) == without->hidden_matrices(without->layout().tensors()[0]));
    BOOST_TEST(params_without_exit(with->layout()) == without->layout().params());
    BOOST_TEST(params_without_exit(without->layout()) == without->layout().params());
    BOOST_TEST(with->exit_classes() == config.classes);
    BOOST_TEST(without->exit_classes() == 0u);
    const auto start = test::initial_of(*with), plain_start = test::initial_of(*without);
    BOOST_TEST(std::equal(plain_start.begin(), plain_start.end(), start.begin()));
    BOOST_TEST(start[tensors[own].offset] != 0);
    BOOST_TEST(start.back() == 0);
    Prng prng(1);
    const auto below = test::draw(prng, 3 * without->border_floats().below);
    std::vector<float> above(3 * without->border_floats().above), same(above.size());
    without->forward(plain_start, {.rows = 3}, below, above);
    with->forward(start, {.rows = 3}, below, same);
    BOOST_TEST((above == same));
    BOOST_TEST(with->memory_bytes() > without->memory_bytes());
  }
}

BOOST_AUTO_TEST_CASE(exits_are_refused_where_they_cannot_be) {
  ModelConfig text = test::gpt_config(61, 9, 4, 2, 16);
  text.tied_head = false;
  text.units = {0, 1};
  text.exit = {1, 0.5};
  BOOST_TEST(make_model(text).error().text.starts_with("pipeline.exits are for models that classify"));
  ModelConfig last = mlp_with_exits();
  last.units = {2, 3};
  last.exit = {3, 0.5};
  BOOST_TEST(make_model(last).error().text.starts_with("the last stage ends in the head"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
