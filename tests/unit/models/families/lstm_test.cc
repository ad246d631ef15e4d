// A whole LSTM: names and shapes, loss, gradient and state against PyTorch (golden_lstm.py), equal bits, initial
// weights, and its decoder.
#include "models/families/lstm.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/decoders/lstm_decoder.h"
#include "runtime/base/kernel_choice.h"
#include "tests/unit/models/families/golden_lstm.h"
#include "tests/unit/models/families/gpt_support.h"
#include "tests/unit/models/families/lstm_config.h"
#include "tests/unit/threads.h"

namespace rumor::models {
namespace {

using test::draw;
using test::lstm_config;

struct Rows {
  std::vector<Token> tokens;
  std::vector<float> state;
  std::uint32_t rows = 0;

  Rows(Prng& prng, std::uint32_t vocabulary, std::uint32_t context, std::uint32_t count, std::size_t state_floats)
      : tokens(std::size_t{count} * (context + 1)),
        state(draw(prng, static_cast<long>(count * state_floats))),
        rows(count) {
    for (Token& token : tokens) token = static_cast<Token>(prng.below(vocabulary));
  }
  Batch batch() { return {.rows = rows, .tokens = tokens, .state = state}; }
};

std::string lstm_refusal(const ModelConfig& config) {
  const auto made = make_model(config);
  return made ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lstm)

BOOST_AUTO_TEST_CASE(tensors_are_named_and_shaped_as_a_pytorch_modules) {
  const auto layout = lstm_layout(lstm_config(256, 128, 64, {192, 192}));
  BOOST_REQUIRE(layout.ok());
  const std::pair<const char*, std::vector<std::uint32_t>> expected[] = {
      {"embedding.weight", {256, 64}},     {"lstm.weight_ih_l0", {768, 64}}, {"lstm.weight_hh_l0", {768, 192}},
      {"lstm.bias_ih_l0", {768}},          {"lstm.bias_hh_l0", {768}},       {"lstm.weight_ih_l1", {768, 192}},
      {"lstm.weight_hh_l1", {768, 192}},   {"lstm.bias_ih_l1", {768}},       {"lstm.bias_hh_l1", {768}},
      {"head.weight", {256, 192}},         {"head.bias", {256}}};
  const std::vector<TensorInfo>& tensors = layout->tensors();
  BOOST_REQUIRE(tensors.size() == std::size(expected));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    BOOST_TEST(tensors[i].name == expected[i].first);
    BOOST_TEST((tensors[i].shape == expected[i].second), tensors[i].name);
  }
}

BOOST_AUTO_TEST_CASE(loss_gradient_and_state_are_pytorchs) {
  const auto model = std::move(make_model(lstm_config(11, 6, 3, {5, 5}))).value();
  const std::vector<float> params = test::values(model->layout().params(), 37, 101, 64);
  std::vector<float> gradient(params.size(), 99.0f), state(40);
  std::vector<Token> tokens(28);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * i * 7 % 11);
  BOOST_REQUIRE(model->state_floats() == 20u);
  // golden_lstm.py has [layers][batch][units], out and cell apart.
  const std::vector<float> parts[] = {test::values(20, 7, 31, 16), test::values(20, 11, 31, 16)};
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    for (std::size_t i = 0; i < 40; ++i) state[i] = parts[i / 5 % 2][i / 10 % 2 * 10 + i / 20 * 5 + i % 5];
    Batch batch{.rows = 2, .tokens = std::span(tokens).first(14), .state = state};
    BOOST_TEST(std::abs(model->evaluate(params, batch).loss - golden::lstm_loss_0) < 2e-6);
    BOOST_TEST(std::abs(static_cast<double>(model->loss_and_gradient(params, batch, gradient)) - golden::lstm_loss_0) <
               2e-6);
    BOOST_TEST(test::worst(gradient, golden::lstm_gradient_0) < 2e-6);
    BOOST_TEST(test::worst(state, golden::lstm_state_0) < 2e-6);
    batch.tokens = std::span(tokens).last(14);
    BOOST_TEST(std::abs(static_cast<double>(model->loss_and_gradient(params, batch, gradient)) - golden::lstm_loss_1) <
               2e-6);
    BOOST_TEST(test::worst(gradient, golden::lstm_gradient_1) < 2e-6);
    BOOST_TEST(test::worst(state, golden::lstm_state_1) < 2e-6);
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

// Against differences along drawn directions, with one to three layers and uneven widths, one of them beyond a panel.
BOOST_AUTO_TEST_CASE(gradient_agrees_with_differences) {
  for (const auto& hidden : {std::vector<std::uint32_t>{71}, {21, 21}, {16, 16, 16}}) {
    const auto model = std::move(make_model(lstm_config(37, 19, 13, hidden))).value();
    Prng prng(3);
    Rows rows(prng, 37, 19, 3, model->state_floats());
    const std::vector<float> params = draw(prng, model->layout().params(), 0.3), before = rows.state;
    std::vector<float> gradient(params.size()), moved(params.size());
    model->loss_and_gradient(params, rows.batch(), gradient);
    BOOST_TEST((rows.state != before));
    rows.state = before;
    for (int direction = 0; direction < 4; ++direction) {
      const std::vector<float> way = draw(prng, model->layout().params());
      double loss[2];
      for (int side = 0; side < 2; ++side) {
        for (std::size_t i = 0; i < params.size(); ++i) moved[i] = params[i] + (side == 0 ? 1e-3f : -1e-3f) * way[i];
        loss[side] = model->evaluate(moved, rows.batch()).loss;
      }
      BOOST_TEST((rows.state == before));
      const double slope = (loss[0] - loss[1]) / 2e-3, expected = test::dot(gradient, way);
      BOOST_TEST(std::abs(slope - expected) < 2e-3 * (1 + std::abs(expected)), slope << " != " << expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(bits_are_equal_for_all_kernels_threads_and_histories) {
  const ModelConfig config = lstm_config(50, 13, 24, {41, 41});
  const auto used = std::move(make_model(config)).value();
  const std::vector<float> params = to_floats(initial_weights(*used, 1, 24), 24);
  for (const std::uint32_t count : {2u, 27u, 1u}) {
    Prng prng(count);
    Rows rows(prng, 50, 13, count, used->state_floats());
    const std::vector<float> before = rows.state;
    std::vector<float> expected(params.size()), gradient(params.size());
    BOOST_REQUIRE(choose_kernels("portable").ok());
    const float loss = std::move(make_model(config)).value()->loss_and_gradient(params, rows.batch(), expected);
    const std::vector<float> after = rows.state;
    for (const KernelTable* table : kernel_variants()) {
      BOOST_REQUIRE(choose_kernels(table->name).ok());
      for (const unsigned width : {1u, 2u, 5u}) {
        rumor::test::Backwards backwards(width);
        used->set_parallel(&backwards);
        rows.state = before;
        BOOST_TEST(used->loss_and_gradient(params, rows.batch(), gradient) == loss);
        BOOST_TEST((gradient == expected), table->name << " rows " << count << " in " << width << " pieces");
        BOOST_TEST((rows.state == after));
      }
      used->set_parallel(nullptr);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

// A row that continues another predicts as if both were one row.
BOOST_AUTO_TEST_CASE(a_state_goes_on_from_row_to_row) {
  const auto halves = std::move(make_model(lstm_config(30, 7, 8, {16, 16}))).value();
  const auto whole = std::move(make_model(lstm_config(30, 14, 8, {16, 16}))).value();
  Prng prng(4);
  const std::vector<float> params = draw(prng, halves->layout().params(), 0.5);
  std::vector<float> gradient(params.size()), state(halves->state_floats()), p(30 * 14), first(30 * 7), second(30 * 7);
  Rows rows(prng, 30, 14, 1, 0);
  const auto half = [&](std::size_t at) {
    return Batch{.rows = 1, .tokens = std::span(rows.tokens).subspan(at, 8), .state = state};
  };
  whole->predict(params, rows.batch(), p);
  halves->predict(params, half(0), first);
  const double loss = static_cast<double>(halves->loss_and_gradient(params, half(0), gradient));
  halves->predict(params, half(7), second);
  first.insert(first.end(), second.begin(), second.end());
  BOOST_TEST((first == p));
  const double both = (loss + static_cast<double>(halves->loss_and_gradient(params, half(7), gradient))) / 2;
  BOOST_TEST(std::abs(both - whole->evaluate(params, rows.batch()).loss) < 1e-6);
}

BOOST_AUTO_TEST_CASE(the_decoder_predicts_what_the_model_does) {
  const ModelConfig config = lstm_config(23, 10, 12, {19, 19});
  const auto model = std::move(make_model(config)).value();
  Prng prng(5);
  const std::vector<float> params = draw(prng, model->layout().params(), 0.5);
  Rows rows(prng, 23, 10, 1, 0);
  std::vector<float> p(10 * 23);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    LstmDecoder decoder(std::move(lstm_shape(model->layout())).value(), params);
    model->predict(params, rows.batch(), p);
    for (std::size_t i = 0; i < 10; ++i) {
      const std::span<const float> logits = decoder.read(rows.tokens[i]);
      double sum = 0;
      for (const float z : logits) sum += std::exp(static_cast<double>(z));
      for (std::size_t c = 0; c < 23; ++c)
        BOOST_TEST(std::abs(std::exp(double{logits[c]}) / sum - double{p[i * 23 + c]}) < 1e-6);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_CASE(weights_begin_as_nn_lstms_and_know_nothing) {
  const auto model = std::move(make_model(lstm_config(256, 16, 64, {100, 100}))).value();
  const std::vector<float> params = to_floats(initial_weights(*model, 1, 24), 24);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    double squares = 0, largest = 0;
    for (std::uint32_t i = 0; i < tensor.size; ++i) {
      const auto x = static_cast<double>(params[tensor.offset + i]);
      squares += x * x;
      largest = std::max(largest, std::abs(x));
    }
    const double deviation = std::sqrt(squares / tensor.size);
    if (tensor.shape.size() == 1) {
      BOOST_TEST(largest == 0.0, tensor.name);
    } else if (tensor.name == "embedding.weight") {
      BOOST_TEST(std::abs(deviation / 0.25 - 1) < 0.05, tensor.name << " " << deviation);
    } else {
      BOOST_TEST((largest <= 0.1 && largest > 0.099), tensor.name << " " << largest);
      BOOST_TEST(std::abs(deviation / (0.1 / std::sqrt(3.0)) - 1) < 0.05, tensor.name << " " << deviation);
    }
  }
  Prng prng(1);
  Rows rows(prng, 256, 16, 4, 0);
  BOOST_TEST(std::abs(model->evaluate(params, rows.batch()).loss - std::log(256.0)) < 0.1);
}

BOOST_AUTO_TEST_CASE(bad_configurations_and_layouts_are_refused_with_a_reason) {
  BOOST_TEST(lstm_refusal(lstm_config(11, 6, 3, {5, 5})).empty());
  BOOST_TEST(lstm_refusal(lstm_config(0, 6, 3, {5})).find("data.kind") != std::string::npos);
  BOOST_TEST(lstm_refusal(lstm_config(2'000'000, 6, 3, {5})) ==
             "an lstm needs a vocabulary of 2 to 1048576, not 2000000");
  BOOST_TEST(lstm_refusal(lstm_config(11, 0, 3, {5})) == "model.context must be from 1 to 65536, not 0");
  BOOST_TEST(lstm_refusal(lstm_config(11, 6, 0, {5})) == "model.embedding of an lstm must be from 1 to 8192, not 0");
  BOOST_TEST(lstm_refusal(lstm_config(11, 6, 3, {5, 5, 5, 5})) ==
             "an lstm has 1 to 3 layers, not 4; model.hidden has one width for each, such as [256, 256]");
  BOOST_TEST(lstm_refusal(lstm_config(11, 6, 3, {0})) ==
             "the layers of an lstm are from 1 to 8192 wide (model.hidden), not 0");
  BOOST_TEST(lstm_refusal(lstm_config(11, 6, 3, {5, 6})) ==
             "the layers of an lstm have one width; make all numbers of model.hidden equal");
  const auto shape_refusal = [](std::vector<TensorInfo> tensors) {
    const auto shape = lstm_shape(std::move(ParamLayout::create(std::move(tensors))).value());
    return shape ? std::string() : shape.error().text;
  };
  std::vector<TensorInfo> tensors = lstm_layout(lstm_config(11, 6, 3, {5}))->tensors();
  BOOST_TEST(shape_refusal(tensors).empty());
  tensors.back().shape = {12};
  BOOST_TEST(shape_refusal(tensors) == "this is no LSTM that can be computed: tensor head.bias is 12, not 11");
  tensors.pop_back();
  BOOST_TEST(shape_refusal(tensors) == "this is no LSTM that can be computed: it has no tensor head.bias");
  BOOST_TEST(shape_refusal({{"0.weight", {3, 4}}}) ==
             "this is no LSTM: it has no matrices embedding.weight and lstm.weight_hh_l0");
}

BOOST_AUTO_TEST_CASE(a_diverged_model_shows_nan_and_does_not_crash) {
  const auto model = std::move(make_model(lstm_config(11, 6, 4, {5}))).value();
  std::vector<float> params(model->layout().params(), std::nanf("")), gradient(params.size());
  Prng prng(1);
  Rows rows(prng, 11, 6, 2, model->state_floats());
  BOOST_TEST(std::isnan(model->loss_and_gradient(params, rows.batch(), gradient)));
  BOOST_TEST(std::isnan(gradient.back()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
