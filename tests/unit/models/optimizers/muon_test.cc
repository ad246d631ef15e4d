// Muon against its formula worked out with Newton-Schulz alone; which tensors count as hidden matrices.
#include "models/optimizers/muon.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "models/families/model.h"
#include "models/optimizers/newton_schulz.h"
#include "runtime/base/prng.h"
#include "tests/unit/threads.h"

namespace rumor::models {
namespace {

// 3 parameters, a matrix of 2 x 3, 2 parameters, two matrices of 4 x 3 side by side, 1 parameter.
constexpr std::uint32_t parameters = 3 + 6 + 2 + 24 + 1;
const std::vector<HiddenMatrix> matrices = {{3, 2, 3, 3}, {11, 4, 3, 6}, {14, 4, 3, 6}};

OptimizerConfig config() {
  return {.kind = "muon", .momentum = 0.8, .beta2 = 0.9, .weight_decay = 0.25, .adam_share = 0.5, .adam_beta1 = 0.7};
}

std::unique_ptr<Optimizer> muon() { return std::move(make_optimizer(config(), parameters, matrices)).value(); }

std::vector<float> random(std::uint64_t seed) {
  Prng prng(seed);
  std::vector<float> values(parameters);
  for (float& value : values) value = static_cast<float>(prng.between(-1000, 1000)) / 300;
  return values;
}

bool is_hidden(std::uint32_t i) { return (i >= 3 && i < 9) || (i >= 11 && i < 35); }

ModelConfig family(const std::string& name) {
  ModelConfig model;
  model.family = name;
  model.layers = 2;
  model.heads = 2;
  model.embedding = 8;
  model.context = 16;
  model.vocabulary = name == "gpt" || name == "lstm" ? 11 : 0;
  model.hidden = {12, name == "lstm" ? 12u : 6u};
  model.stage_channels = {4, 8};
  model.channels = 1;
  model.height = model.width = 8;
  model.inputs = 64;
  model.classes = 3;
  return model;
}

// The names of a model's tensors that hold hidden matrices, each with how many.
std::string hidden_tensors(const std::string& name) {
  const auto model = std::move(make_model(family(name))).value();
  std::string all;
  for (const TensorInfo& tensor : model->layout().tensors())
    if (const std::uint32_t count = model->hidden_matrices(tensor); count > 0)
      all += tensor.name + ":" + std::to_string(count) + " ";
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(muon_optimizer)

BOOST_AUTO_TEST_CASE(a_hidden_matrix_moves_by_the_orthogonal_part_of_its_momentum) {
  const auto optimizer = muon();
  const std::vector<float> weights = random(9);
  std::vector<float> momentum(parameters, 0.0f), delta(parameters);
  NewtonSchulz newton_schulz;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const std::vector<float> gradient = random(step);
    optimizer->step(gradient, 0.1, delta, weights);
    for (const HiddenMatrix& matrix : matrices) {
      std::vector<float> ahead, direction(matrix.rows * matrix.cols);
      std::vector<std::uint32_t> place;
      for (std::uint32_t row = 0; row < matrix.rows; ++row)
        for (std::uint32_t col = 0; col < matrix.cols; ++col) {
          const std::uint32_t i = matrix.offset + row * matrix.stride + col;
          momentum[i] = 0.8f * momentum[i] + gradient[i];
          ahead.push_back(gradient[i] + 0.8f * momentum[i]);
          place.push_back(i);
        }
      newton_schulz.orthogonalise(ahead, matrix.rows, matrix.cols, direction);
      const double scale = 0.1 * 0.2 * std::sqrt(std::max(matrix.rows, matrix.cols));
      for (std::size_t e = 0; e < place.size(); ++e)
        BOOST_TEST(std::abs(delta[place[e]] + scale * direction[e] + 0.025 * weights[place[e]]) < 1e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(all_else_takes_the_step_of_adamw_at_its_own_rate) {
  OptimizerConfig other = config();
  other.kind = "adamw";
  other.momentum = other.adam_beta1;
  const auto adamw = std::move(make_optimizer(other, parameters)).value(), optimizer = muon();
  const std::vector<float> weights = random(9);
  std::vector<float> expected(parameters), delta(parameters);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    optimizer->scale_adam_share(step == 3 ? 2 : 1);
    adamw->step(random(step), step == 3 ? 0.1 : 0.05, expected, weights);
    optimizer->step(random(step), 0.1, delta, weights);
    for (std::uint32_t i = 0; i < parameters; ++i)
      if (!is_hidden(i)) BOOST_TEST(delta[i] == expected[i], "parameter " << i);
  }
}

BOOST_AUTO_TEST_CASE(gradient_and_delta_may_be_the_same_memory_and_threads_change_no_bit) {
  rumor::test::Threads pool(3);
  const auto alone = muon(), shared = muon();
  shared->set_parallel(&pool);
  const std::vector<float> weights = random(9);
  std::vector<float> expected(parameters);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    std::vector<float> values = random(step);
    alone->step(values, 0.1, expected, weights);
    shared->step(values, 0.1, values, weights);
    BOOST_TEST((values == expected));
  }
}

BOOST_AUTO_TEST_CASE(it_goes_on_from_a_checkpoint_with_the_same_bits) {
  const auto first = muon(), second = muon();
  const std::vector<float> weights = random(9);
  std::vector<float> delta(parameters), again(parameters);
  first->step(random(1), 0.1, delta, weights);
  const Bytes state = first->save();
  BOOST_REQUIRE(second->load(state).ok());
  first->step(random(2), 0.1, delta, weights);
  second->step(random(2), 0.1, again, weights);
  BOOST_TEST((delta == again));
  BOOST_TEST((first->save() == second->save()));
  BOOST_TEST(!second->load({state.data(), state.size() - 4}).ok());
  const auto others = std::move(make_optimizer(config(), parameters, {matrices[0]})).value();
  BOOST_TEST(!others->load(state).ok());  // as many parameters, fewer of them in matrices
}

BOOST_AUTO_TEST_CASE(a_step_that_is_taken_elsewhere_has_its_places_and_counts) {
  const auto optimizer = muon();
  const MatrixStep step = optimizer->begin_matrix_step(0.1);
  BOOST_TEST(std::equal(step.matrices.begin(), step.matrices.end(), matrices.begin(), matrices.end()));
  BOOST_REQUIRE(step.stretches.size() == 3u);
  constexpr MatrixStep::Stretch expected[] = {{0, 3, 0}, {9, 11, 3}, {35, 36, 5}};
  for (std::size_t s = 0; s < 3; ++s) {
    BOOST_TEST(step.stretches[s].begin == expected[s].begin);
    BOOST_TEST(step.stretches[s].end == expected[s].end);
    BOOST_TEST(step.stretches[s].second == expected[s].second);
  }
  BOOST_TEST(step.momentum == 0.8f);
  BOOST_TEST(step.of(matrices[1]).factor == static_cast<float>(-0.1 * 0.2 * 2));
  BOOST_TEST(step.of(matrices[1]).decay == -0.025f);
  BOOST_TEST((step.others.kind == StepRule::Kind::adamw));
  BOOST_TEST(step.others.decay == -0.0125f);
  BOOST_TEST(step.others.factor == static_cast<float>(-0.05 / (1 - 0.7)));
  BOOST_TEST(optimizer->begin_matrix_step(0.1).others.factor == static_cast<float>(-0.05 / (1 - 0.7 * 0.7)));
}

BOOST_AUTO_TEST_CASE(each_family_names_its_hidden_matrices) {
  BOOST_TEST(hidden_tensors("gpt") ==
             "transformer.h.0.attn.c_attn.weight:3 transformer.h.0.attn.c_proj.weight:1 "
             "transformer.h.0.mlp.c_fc.weight:1 transformer.h.0.mlp.c_proj.weight:1 "
             "transformer.h.1.attn.c_attn.weight:3 transformer.h.1.attn.c_proj.weight:1 "
             "transformer.h.1.mlp.c_fc.weight:1 transformer.h.1.mlp.c_proj.weight:1 ");
  BOOST_TEST(hidden_tensors("mlp") == "2.weight:1 ");
  BOOST_TEST(hidden_tensors("cnn") == "3.weight:1 7.weight:1 9.weight:1 ");
  BOOST_TEST(hidden_tensors("lstm") ==
             "lstm.weight_ih_l0:1 lstm.weight_hh_l0:1 lstm.weight_ih_l1:1 lstm.weight_hh_l1:1 ");
}

BOOST_AUTO_TEST_CASE(side_by_side_matrices_are_columns_of_one_tensor) {
  const auto model = std::move(make_model(family("gpt"))).value();
  const std::vector<HiddenMatrix> all = hidden_matrices(*model);
  BOOST_REQUIRE(all.size() == 12U);
  BOOST_TEST(all[1].offset == all[0].offset + 8);
  BOOST_TEST(all[2].offset == all[1].offset + 8);
  for (int i = 0; i < 3; ++i) BOOST_TEST((all[i] == HiddenMatrix{all[i].offset, 8, 8, 24}));
  BOOST_TEST((all[4] == HiddenMatrix{all[4].offset, 8, 32, 32}));
}

BOOST_AUTO_TEST_CASE(a_model_without_hidden_matrices_and_bad_numbers_are_refused) {
  const auto none = make_optimizer({.kind = "muon"}, 8);
  BOOST_REQUIRE(!none.ok());
  BOOST_TEST(none.error().text.find("adamw") != std::string::npos);
  BOOST_TEST(!make_optimizer({.kind = "muon", .adam_share = 0}, parameters, matrices).ok());
  BOOST_TEST(!make_optimizer({.kind = "muon", .adam_beta1 = 1}, parameters, matrices).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
