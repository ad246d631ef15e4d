// Predictions of every family of models, and what being drawn towards others' predictions does to their gradients.
#include "models/layers/soft_targets.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/evaluate/ensemble.h"
#include "models/evaluate/evaluation.h"
#include "tests/unit/models/families/gpt_support.h"

namespace rumor::models {
namespace {

using test::dot;
using test::draw;

constexpr std::uint32_t batch_rows = 5;

// A small model of one family, with a batch for it.
struct SoftSmall {
  explicit SoftSmall(const std::string& family) {
    ModelConfig config;
    config.family = family;
    config.hidden = {9};
    if (family == "gpt") {
      config.vocabulary = outputs = 37;
      config.context = places = 11;
      config.layers = 2;
      config.heads = 2;
      config.embedding = 12;
      for (std::uint32_t i = 0; i < batch_rows * 12; ++i) tokens.push_back(static_cast<Token>(prng.below(37)));
    } else {
      config.inputs = 64;
      config.channels = 1;
      config.height = config.width = 8;
      config.stage_channels = {4};
      config.classes = outputs;
      x = draw(prng, batch_rows * 64);
      for (std::uint32_t i = 0; i < batch_rows; ++i) labels.push_back(static_cast<std::uint8_t>(prng.below(outputs)));
    }
    model = std::move(make_model(config)).value();
    params = draw(prng, model->layout().params(), 0.3);
    soft = draw(prng, static_cast<long>(model->predictions(batch_rows)), 0.5);
    for (std::size_t first = 0; first < soft.size(); first += outputs) {
      float sum = 0;
      for (std::size_t c = 0; c < outputs; ++c) sum += soft[first + c] += 0.5f;
      for (std::size_t c = 0; c < outputs; ++c) soft[first + c] /= sum;
    }
  }

  Batch batch(std::span<const float> probability, float weight) const {
    return {x, labels, batch_rows, tokens, {probability, weight}};
  }
  // The target of row r: a label, or the next token.
  std::size_t wanted(std::size_t r) const {
    return tokens.empty() ? labels[r] : tokens[r / places * (places + 1) + r % places + 1];
  }

  Prng prng{8};
  std::uint32_t outputs = 6, places = 1;  // classes; rows of predictions for a row of the batch
  std::unique_ptr<Model> model;
  std::vector<float> params, x, soft;
  std::vector<std::uint8_t> labels;
  std::vector<Token> tokens;
};

const char* const families[] = {"mlp", "cnn", "gpt"};

}  // namespace

BOOST_AUTO_TEST_SUITE(soft_targets)

BOOST_AUTO_TEST_CASE(predictions_are_the_distributions_that_the_loss_is_of) {
  for (const char* family : families) BOOST_TEST_CONTEXT(family) {
    SoftSmall s(family);
    std::vector<float> p(s.model->predictions(batch_rows));
    BOOST_TEST_REQUIRE(p.size() == std::size_t{batch_rows} * s.places * s.outputs);
    s.model->predict(s.params, s.batch({}, 0), p);
    double loss = 0;
    const std::size_t all = batch_rows * s.places;
    for (std::size_t r = 0; r < all; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < s.outputs; ++c) sum += static_cast<double>(p[r * s.outputs + c]);
      BOOST_TEST(std::abs(sum - 1) < 1e-5);
      loss -= std::log(static_cast<double>(p[r * s.outputs + s.wanted(r)])) / static_cast<double>(all);
    }
    BOOST_TEST(std::abs(loss - s.model->evaluate(s.params, s.batch({}, 0)).loss) < 1e-5);
  }
}

// The loss by its formula from predictions; its slope along drawn directions from differences of that.
BOOST_AUTO_TEST_CASE(loss_and_gradient_agree_with_the_formula) {
  constexpr float weight = 0.75f;
  for (const char* family : families) BOOST_TEST_CONTEXT(family) {
    SoftSmall s(family);
    std::vector<float> p(s.soft.size()), gradient(s.params.size()), moved(s.params.size());
    const auto formula = [&](const std::vector<float>& params) {
      s.model->predict(params, s.batch({}, 0), p);
      double pull = 0;
      for (std::size_t i = 0; i < p.size(); ++i)
        pull -= static_cast<double>(s.soft[i]) * std::log(static_cast<double>(p[i]));
      return s.model->evaluate(params, s.batch({}, 0)).loss +
             static_cast<double>(weight) * pull / static_cast<double>(batch_rows * s.places);
    };
    const float loss = s.model->loss_and_gradient(s.params, s.batch(s.soft, weight), gradient);
    BOOST_TEST(std::abs(static_cast<double>(loss) - formula(s.params)) < 1e-5);
    for (int direction = 0; direction < 4; ++direction) {
      const std::vector<float> way = draw(s.prng, static_cast<long>(s.params.size()));
      double side[2];
      for (int i = 0; i < 2; ++i) {
        for (std::size_t at = 0; at < moved.size(); ++at)
          moved[at] = s.params[at] + (i == 0 ? 2e-4f : -2e-4f) * way[at];
        side[i] = formula(moved);
      }
      const double slope = (side[0] - side[1]) / 4e-4, expected = dot(gradient, way);
      BOOST_TEST(std::abs(slope - expected) < 3e-3 * (1 + std::abs(expected)), slope << " != " << expected);
    }
  }
}

// A model whose soft targets are its own predictions learns from labels alone.
BOOST_AUTO_TEST_CASE(own_predictions_draw_nowhere) {
  for (const char* family : families) BOOST_TEST_CONTEXT(family) {
    SoftSmall s(family);
    std::vector<float> p(s.soft.size()), plain(s.params.size()), drawn(s.params.size());
    s.model->predict(s.params, s.batch({}, 0), p);
    s.model->loss_and_gradient(s.params, s.batch({}, 0), plain);
    s.model->loss_and_gradient(s.params, s.batch(p, 2), drawn);
    BOOST_TEST(test::worst(drawn, plain) < 1e-6);
    s.model->loss_and_gradient(s.params, s.batch(s.soft, 2), drawn);
    BOOST_TEST(test::worst(drawn, plain) > 1e-3);
  }
}

// One input and two classes, no hidden layer: the logits are w x + b, so a bias of ln 3 makes it 3 : 1.
BOOST_AUTO_TEST_CASE(models_answer_with_the_mean_of_their_probabilities) {
  ModelConfig shape;
  shape.hidden = {};
  shape.inputs = 1;
  shape.classes = 2;
  const auto model = make_model(shape).value();
  const float odds = std::log(3.0f);
  const std::vector<float> first = {0, 0, odds, 0}, second = {0, 0, 0, 0}, x = {1};
  const std::vector<std::uint8_t> label = {0};
  std::vector<float> mean;
  const std::span<const float> both[] = {first, second};
  mean_prediction(*model, both, {x, label, 1}, mean);
  BOOST_REQUIRE(mean.size() == 2u);
  BOOST_TEST(mean[0] == 0.625f, boost::test_tools::tolerance(1e-6f));
  BOOST_TEST(mean[1] == 0.375f, boost::test_tools::tolerance(1e-6f));
}

// One model alone is an ensemble like any other: its own evaluation.
BOOST_AUTO_TEST_CASE(an_ensemble_of_one_is_that_model) {
  DataConfig config;
  config.kind = "synthetic";
  const auto data = load_data(config).value();
  ModelConfig shape;
  shape.hidden = {16};
  data->describe(shape);
  const auto model = make_model(shape).value();
  const auto weights = to_floats(initial_weights(*model, 3, 24), 24);
  const std::span<const float> one[] = {weights};
  const Evaluation own = evaluate_on_test(*model, *data, weights, UINT32_MAX);
  const Evaluation together = evaluate_ensemble(*model, *data, one);
  BOOST_TEST(together.loss == own.loss, boost::test_tools::tolerance(1e-5));
  BOOST_TEST(*together.accuracy == *own.accuracy, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
