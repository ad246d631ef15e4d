// The MLP against constants from elsewhere (golden_mlp.py) and against finite differences of a slow twin in
// double.
#include "models/families/mlp.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "models/kernels/kernels.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

std::unique_ptr<Model> model_of(std::uint32_t inputs, std::vector<std::uint32_t> hidden,
                                std::uint32_t classes) {
  ModelConfig config;
  config.hidden = std::move(hidden);
  config.inputs = inputs;
  config.classes = classes;
  return std::move(make_model(config)).value();
}

std::vector<float> draw_values(Prng& prng, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(prng.between(-1000, 1000)) / 1000;
  return values;
}

std::vector<std::uint8_t> draw_labels(Prng& prng, std::uint32_t rows, std::uint32_t classes) {
  std::vector<std::uint8_t> labels(rows);
  for (std::uint8_t& label : labels) label = static_cast<std::uint8_t>(prng.below(classes));
  return labels;
}

// Mean cross-entropy in double, one row and one unit at a time.
double slow_loss(const std::vector<std::uint32_t>& widths, const std::vector<double>& params,
                 const Batch& batch) {
  double loss = 0;
  for (std::uint32_t row = 0; row < batch.rows; ++row) {
    const auto* x = batch.x.data() + std::size_t{row} * widths[0];
    std::vector<double> input(x, x + widths[0]);
    std::size_t at = 0;
    for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
      std::vector<double> output(widths[layer + 1]);
      const std::size_t bias = at + input.size() * output.size();
      for (std::size_t o = 0; o < output.size(); ++o) {
        output[o] = params[bias + o];
        for (std::size_t i = 0; i < input.size(); ++i)
          output[o] += params[at + o * input.size() + i] * input[i];
        if (layer + 2 < widths.size()) output[o] = std::max(output[o], 0.0);
      }
      at = bias + output.size();
      input = std::move(output);
    }
    double sum = 0;
    for (const double z : input) sum += std::exp(z);
    loss += std::log(sum) - input[batch.label[row]];
  }
  return loss / batch.rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mlp)

BOOST_AUTO_TEST_CASE(tensors_are_named_and_shaped_as_in_pytorch) {
  const auto model = model_of(784, {128, 64}, 10);
  const std::vector<TensorInfo>& tensors = model->layout().tensors();
  BOOST_REQUIRE(tensors.size() == 6u);
  BOOST_TEST(tensors[0].name == "0.weight");
  BOOST_TEST((tensors[0].shape == std::vector<std::uint32_t>{128, 784}));
  BOOST_TEST(tensors[1].name == "0.bias");
  BOOST_TEST((tensors[1].shape == std::vector<std::uint32_t>{128}));
  BOOST_TEST(tensors[2].name == "2.weight");
  BOOST_TEST((tensors[2].shape == std::vector<std::uint32_t>{64, 128}));
  BOOST_TEST(tensors[4].name == "4.weight");
  BOOST_TEST((tensors[4].shape == std::vector<std::uint32_t>{10, 64}));
  BOOST_TEST(model->layout().params() == 784u * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10);
}

// Constants: golden_mlp.py, which shares no code with the model. Equal to the last bit, with every kernel
// variant.
BOOST_AUTO_TEST_CASE(one_step_has_the_golden_bits) {
  const float golden[] = {
      0x1.121a78p-4f, 0x1.40e6ccp-6f, -0x1.c69c4ap-6f, 0x1.eeb924p-5f, 0x1.abde64p-7f, 0x1.3f51e4p-3f,
      -0x1.f5c9d6p-3f, -0x1.e6952cp-6f, 0x1.7c248ap-3f, -0x1.b8f73p-3f, 0x1.3f51e4p-3f, -0x1.f5c9d4p-3f,
      -0x1.e6952ap-6f, 0x1.7c2488p-3f, -0x1.b8f72ep-3f, 0, 0x1.a0df24p-3f, -0x1.675f42p-3f,
      0x1.cbff0ep-6f, 0x1.da5f06p-3f, -0x1.abde64p-5f, 0x1.e6952cp-3f, 0x1.e6952ap-3f, 0x1.cbff0ep-3f,
      -0x1.c0078cp-2f, 0x1.0736eap-5f, 0x1.2d6b38p-6f, 0x1.f0392ep-4f, 0x1.e2ef4cp-5f, 0x1.172c4ep-1f,
      0x1.3fb196p-2f, -0x1.c9e2p-2f, 0x1.83a9a4p-2f, -0x1.279fbep-1f, -0x1.52884ap-2f, 0x1.4dd3b6p-2f,
      -0x1.3c9dep-3f, 0x1.3b5b8p-6f, 0x1.15327p-3f};
  const auto model = model_of(5, {4}, 3);
  std::vector<float> params(model->layout().params()), gradient(params.size()), x(15);
  BOOST_REQUIRE(params.size() == std::size(golden));
  for (std::size_t i = 0; i < params.size(); ++i)
    params[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 64;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 29 % 83) - 41) / 32;
  const std::uint8_t labels[] = {0, 2, 1};
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    const float loss = model->loss_and_gradient(params, {x, labels, 3}, gradient);
    BOOST_TEST(loss == static_cast<float>(1.9062486266688874), table->name);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      BOOST_TEST(gradient[i] == golden[i],
                 table->name << " " << i << ": " << gradient[i] << " != " << golden[i]);
    const Evaluation evaluation = model->evaluate(params, {x, labels, 3});
    BOOST_TEST(std::abs(evaluation.loss - 1.9062486266688874) < 1e-6);
    BOOST_TEST(*evaluation.accuracy == 0.0);
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_CASE(gradient_agrees_with_finite_differences) {
  const std::vector<std::vector<std::uint32_t>> nets = {{7, 11, 5, 3}, {20, 17, 4}, {6, 2}};
  for (const std::vector<std::uint32_t>& widths : nets) {
    Prng prng(widths.size());
    const auto model = model_of(widths.front(), {widths.begin() + 1, widths.end() - 1}, widths.back());
    const std::vector<float> params = draw_values(prng, model->layout().params());
    const std::vector<float> x = draw_values(prng, 9 * std::size_t{widths.front()});
    const std::vector<std::uint8_t> labels = draw_labels(prng, 9, widths.back());
    const Batch batch{x, labels, 9};
    std::vector<float> gradient(params.size());
    std::vector<double> at(params.begin(), params.end());
    const float loss = model->loss_and_gradient(params, batch, gradient);
    BOOST_TEST(std::abs(loss - slow_loss(widths, at, batch)) < 1e-5);
    for (std::size_t i = 0; i < params.size(); ++i) {
      const double step = 1e-6, here = at[i];
      at[i] = here + step;
      const double above = slow_loss(widths, at, batch);
      at[i] = here - step;
      const double below = slow_loss(widths, at, batch);
      at[i] = here;
      const double slope = (above - below) / (2 * step);
      BOOST_TEST(std::abs(gradient[i] - slope) < 1e-5,
                 "parameter " << i << ": " << gradient[i] << " != " << slope);
    }
  }
}

// Any batch size, and buffers that shrink and grow between calls: the same bits as a fresh model.
BOOST_AUTO_TEST_CASE(every_variant_and_batch_size_gives_equal_bits) {
  const auto used = model_of(50, {33, 19}, 7);
  for (const std::uint32_t rows : {1u, 300u, 16u, 5u, 64u}) {
    Prng prng(rows);
    const std::vector<float> params = draw_values(prng, used->layout().params());
    const std::vector<float> x = draw_values(prng, std::size_t{rows} * 50);
    const std::vector<std::uint8_t> labels = draw_labels(prng, rows, 7);
    std::vector<float> expected(params.size()), gradient(params.size());
    BOOST_REQUIRE(choose_kernels("portable").ok());
    const float loss = model_of(50, {33, 19}, 7)->loss_and_gradient(params, {x, labels, rows}, expected);
    for (const KernelTable* table : kernel_variants()) {
      BOOST_REQUIRE(choose_kernels(table->name).ok());
      std::fill(gradient.begin(), gradient.end(), 99.0f);
      BOOST_TEST(used->loss_and_gradient(params, {x, labels, rows}, gradient) == loss);
      BOOST_TEST((gradient == expected), table->name << " batch " << rows);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_CASE(evaluation_in_pieces_is_the_mean_over_all_rows) {
  const auto model = model_of(4, {6}, 3);
  Prng prng(8);
  const std::uint32_t rows = 600;  // more than two pieces
  const std::vector<float> params = draw_values(prng, model->layout().params()), x = draw_values(prng, rows * 4);
  const std::vector<std::uint8_t> labels = draw_labels(prng, rows, 3);
  const Evaluation all = model->evaluate(params, {x, labels, rows});
  double loss = 0, right = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const Evaluation one = model->evaluate(params, {std::span(x).subspan(row * 4, 4), {&labels[row], 1}, 1});
    loss += one.loss;
    right += *one.accuracy;
  }
  BOOST_TEST(std::abs(all.loss - loss / rows) < 1e-12);
  BOOST_TEST(*all.accuracy == right / rows);
  BOOST_TEST(*all.accuracy > 0.1);
  BOOST_TEST(*all.accuracy < 0.9);
}

BOOST_AUTO_TEST_CASE(a_diverged_model_shows_nan_and_does_not_crash) {
  const auto model = model_of(3, {5}, 4);
  std::vector<float> params(model->layout().params(), 0.5f), gradient(params.size());
  const std::vector<float> x = {1, 2, 3};
  const std::uint8_t label = 1;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38f}) {
    std::fill(params.begin(), params.end(), bad);
    const float loss = model->loss_and_gradient(params, {x, {&label, 1}, 1}, gradient);
    BOOST_TEST(!std::isfinite(loss));
    BOOST_TEST(std::any_of(gradient.begin(), gradient.end(), [](float g) { return !std::isfinite(g); }));
    BOOST_TEST(*model->evaluate(params, {x, {&label, 1}, 1}).accuracy == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(bad_configurations_are_refused_with_a_reason) {
  const auto refusal = [](const ModelConfig& config) {
    const auto made = make_model(config);
    return made ? std::string() : made.error().text;
  };
  ModelConfig config;
  config.inputs = 4;
  config.classes = 3;
  BOOST_TEST(refusal(config).empty());
  config.family = "rnn";
  BOOST_TEST(refusal(config) == "unknown model family 'rnn'; known: cnn, gpt, llama, lstm, mlp");
  config.family = "mlp";
  config.hidden = {8, 0};
  BOOST_TEST(refusal(config) == "hidden layer 2 of the mlp has no units; leave it out");
  config.hidden = {0x8000'0000u};
  BOOST_TEST(refusal(config).find("0.weight") != std::string::npos);
  config.hidden = {};
  config.classes = 300;
  BOOST_TEST(refusal(config) == "an mlp needs 2 to 256 classes, not 300");
  config.classes = 3;
  config.inputs = 0;
  BOOST_TEST(refusal(config) == "an mlp needs at least one input");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
