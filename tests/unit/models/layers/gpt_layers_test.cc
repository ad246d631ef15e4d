// The layers of a transformer, one by one: against PyTorch (golden_gpt.py), against differences, and the same
// bits however the work is cut and whatever the kernels.
#include <boost/test/unit_test.hpp>

#include "models/kernels/sequence_kernels.h"
#include "models/layers/attention.h"
#include "models/layers/embedding.h"
#include "models/layers/layer_norm.h"
#include "models/layers/projection.h"
#include "runtime/base/kernel_choice.h"
#include "tests/unit/models/families/golden_gpt.h"
#include "tests/unit/models/families/gpt_support.h"
#include "tests/unit/threads.h"

namespace rumor::models {
namespace {

using namespace test;

// check(parallel) once for each kernel variant and cut; all must give the bits of the first.
template <class Check>
void every_way(Check&& check) {
  std::vector<std::vector<float>> first;
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    for (const unsigned width : {0u, 1u, 3u, 8u}) {
      rumor::test::Backwards backwards(width);
      const std::vector<std::vector<float>> outputs = check(width == 0 ? nullptr : &backwards);
      if (first.empty()) first = outputs;
      BOOST_TEST((outputs == first), table->name << " in " << width << " pieces");
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

struct NormRun {
  std::vector<float> y, x_gradient, gain_gradient, bias_gradient;
};
NormRun run_norm(Parallel* parallel, long rows, long columns, const std::vector<float>& x,
                 const std::vector<float>& gain, const std::vector<float>& bias,
                 const std::vector<float>& change) {
  NormRun run{std::vector<float>(x.size()), std::vector<float>(x.size()), gain, bias};
  LayerNorm norm;
  norm.forward(parallel, rows, columns, x.data(), gain.data(), bias.data(), run.y.data());
  norm.backward(parallel, rows, columns, x.data(), gain.data(), change.data(), run.x_gradient.data(),
                run.gain_gradient.data(), run.bias_gradient.data());
  return run;
}

struct AttentionRun {
  std::vector<float> y, gradient;
};
AttentionRun run_attention(Parallel* parallel, Attention::Shape shape, const std::vector<float>& qkv,
                           const std::vector<float>& change) {
  AttentionRun run{std::vector<float>(qkv.size() / 3), std::vector<float>(qkv.size(), 99.0f)};
  Attention attention;
  attention.forward(parallel, shape, qkv.data(), run.y.data());
  attention.backward(parallel, shape, qkv.data(), run.y.data(), change.data(), run.gradient.data());
  return run;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpt_layers)

BOOST_AUTO_TEST_CASE(gelu_is_pytorchs_tanh_form) {
  const std::vector<float> x = values(24, 13, 47, 4);
  std::vector<float> y(24), change = values(24, 7, 31, 8);
  kernels().sequence->gelu(24, x.data(), y.data());
  kernels().sequence->gelu_backward(24, x.data(), change.data());
  BOOST_TEST(worst(y, golden::gelu) < 1e-6);
  BOOST_TEST(worst(change, golden::gelu_gradient) < 1e-6);
}

BOOST_AUTO_TEST_CASE(gelu_has_the_slope_that_differences_show) {
  Prng prng(1);
  std::vector<float> x = draw(prng, 40, 4), y(40);
  const std::vector<float> weight = draw(prng, 40);
  std::vector<float> change = weight;
  kernels().sequence->gelu_backward(40, x.data(), change.data());
  const double off = worst_slope(x, change, [&] {
    kernels().sequence->gelu(40, x.data(), y.data());
    return dot(y, weight);
  });
  BOOST_TEST(off < 3e-4);
}

BOOST_AUTO_TEST_CASE(layer_norm_is_pytorchs) {
  std::vector<float> gain = values(7, 5, 17, 4);
  const NormRun run =
      run_norm(nullptr, 3, 7, values(21, 13, 47, 8), gain, values(7, 3, 11, 4), values(21, 7, 31, 8));
  BOOST_TEST(worst(run.y, golden::norm) < 1e-6);
  BOOST_TEST(worst(run.x_gradient, golden::norm_x_gradient) < 1e-6);
  BOOST_TEST(worst(run.gain_gradient, golden::norm_gain_gradient) < 1e-6);
  BOOST_TEST(worst(run.bias_gradient, golden::norm_bias_gradient) < 1e-6);
}

BOOST_AUTO_TEST_CASE(layer_norm_has_the_slopes_that_differences_show) {
  Prng prng(2);
  const long rows = 5, columns = 37;
  std::vector<float> x = draw(prng, rows * columns), gain = draw(prng, columns), bias = draw(prng, columns);
  const std::vector<float> weight = draw(prng, rows * columns);
  const NormRun run = run_norm(nullptr, rows, columns, x, gain, bias, weight);
  const auto loss = [&] { return dot(run_norm(nullptr, rows, columns, x, gain, bias, weight).y, weight); };
  BOOST_TEST(worst_slope(x, run.x_gradient, loss) < 3e-4);
  BOOST_TEST(worst_slope(gain, run.gain_gradient, loss) < 3e-4);
  BOOST_TEST(worst_slope(bias, run.bias_gradient, loss) < 3e-4);
}

BOOST_AUTO_TEST_CASE(layer_norm_adds_its_change_and_has_equal_bits_every_way) {
  Prng prng(3);
  const long rows = 150, columns = 45;
  const std::vector<float> x = draw(prng, rows * columns), gain = draw(prng, columns),
                           bias = draw(prng, columns), change = draw(prng, rows * columns);
  every_way([&](Parallel* parallel) {
    NormRun run = run_norm(parallel, rows, columns, x, gain, bias, change);
    return std::vector<std::vector<float>>{run.y, run.x_gradient, run.gain_gradient, run.bias_gradient};
  });
  LayerNorm norm;
  std::vector<float> y(x.size()), from_zero(x.size()), from_one(x.size(), 1.0f), sums(columns);
  norm.forward(nullptr, rows, columns, x.data(), gain.data(), bias.data(), y.data());
  for (std::vector<float>* to : {&from_zero, &from_one})
    norm.backward(nullptr, rows, columns, x.data(), gain.data(), change.data(), to->data(), sums.data(),
                  sums.data());
  for (std::size_t i = 0; i < x.size(); ++i) from_zero[i] += 1;
  BOOST_TEST(worst(from_one, from_zero) < 1e-6);
}

BOOST_AUTO_TEST_CASE(attention_is_pytorchs) {
  const AttentionRun run = run_attention(nullptr, {2, 5, 2, 3}, values(180, 13, 47, 8), values(60, 7, 31, 8));
  BOOST_TEST(worst(run.y, golden::attention) < 1e-5);
  BOOST_TEST(worst(run.gradient, golden::attention_gradient) < 1e-5);
}

// Longer than one block, and not a multiple of it.
BOOST_AUTO_TEST_CASE(attention_has_the_slopes_that_differences_show) {
  Prng prng(4);
  const Attention::Shape shape{1, Attention::block + 9, 2, 5};
  std::vector<float> qkv = draw(prng, shape.context * 3 * shape.width(), 2);
  const std::vector<float> weight = draw(prng, shape.context * shape.width());
  const AttentionRun run = run_attention(nullptr, shape, qkv, weight);
  BOOST_TEST(worst_slope(qkv, run.gradient,
                         [&] { return dot(run_attention(nullptr, shape, qkv, weight).y, weight); }) < 1e-3);
}

BOOST_AUTO_TEST_CASE(attention_does_not_look_ahead_and_has_equal_bits_every_way) {
  Prng prng(5);
  const Attention::Shape shape{3, Attention::block + 21, 3, 7};
  std::vector<float> qkv = draw(prng, shape.batch * shape.context * 3 * shape.width(), 3);
  const std::vector<float> change = draw(prng, shape.batch * shape.context * shape.width());
  every_way([&](Parallel* parallel) {
    const AttentionRun run = run_attention(parallel, shape, qkv, change);
    return std::vector<std::vector<float>>{run.y, run.gradient};
  });
  const std::vector<float> before = run_attention(nullptr, shape, qkv, change).y;
  const long place = 30;
  for (long c = 0; c < 3 * shape.width(); ++c)
    qkv[static_cast<std::size_t>(place * 3 * shape.width() + c)] += 1;
  const std::vector<float> after = run_attention(nullptr, shape, qkv, change).y;
  const auto edge = before.begin() + place * shape.width();
  BOOST_TEST(std::equal(before.begin(), edge, after.begin()));
  BOOST_TEST(!std::equal(edge, edge + shape.width(), after.begin() + place * shape.width()));
}

BOOST_AUTO_TEST_CASE(projection_goes_forward_and_back) {
  Prng prng(6);
  const Projection::Shape shape{250, 23, 31};
  std::vector<float> x = draw(prng, 250 * 23), weight = draw(prng, 23 * 31), bias = draw(prng, 31),
                     residual = draw(prng, 250 * 31), change = draw(prng, 250 * 31), y(250 * 31);
  const std::vector<float> before = draw(prng, 250 * 23);
  std::vector<float> activated(y.size());
  const auto loss = [&] {
    Projection::forward(nullptr, shape, x.data(), weight.data(), bias.data(), residual.data(), y.data(), nullptr);
    return dot(y, change);
  };
  std::vector<float> weight_gradient(weight.size()), bias_gradient(31), x_change(x.size());
  Projection projection;
  projection.backward(nullptr, shape, x.data(), nullptr, weight.data(), change.data(), weight_gradient.data(),
                      bias_gradient.data(), x_change.data());
  BOOST_TEST(worst_slope(x, x_change, loss) < 3e-4);
  BOOST_TEST(worst_slope(weight, weight_gradient, loss) < 3e-4);
  BOOST_TEST(worst_slope(bias, bias_gradient, loss) < 3e-4);
  BOOST_TEST(worst_slope(residual, change, loss) < 3e-4);
  std::vector<float> through_gelu = x_change, gelu_of_y(y.size());
  kernels().sequence->gelu_backward(static_cast<long>(before.size()), before.data(), through_gelu.data());
  every_way([&](Parallel* parallel) {
    Projection::forward(parallel, shape, x.data(), weight.data(), bias.data(), nullptr, y.data(), activated.data());
    projection.backward(parallel, shape, x.data(), before.data(), weight.data(), change.data(), weight_gradient.data(),
                        bias_gradient.data(), x_change.data());
    kernels().sequence->gelu(static_cast<long>(y.size()), y.data(), gelu_of_y.data());
    BOOST_TEST((activated == gelu_of_y && x_change == through_gelu));
    return std::vector<std::vector<float>>{y, activated, weight_gradient, bias_gradient, x_change};
  });
}

BOOST_AUTO_TEST_CASE(projection_in_tiles_is_one_product) {
  Prng prng(8);
  const long rows = 400, in = 3, out = 530;
  const std::vector<float> x = draw(prng, rows * in), weight = draw(prng, in * out), bias = draw(prng, out),
                           residual = draw(prng, rows * out);
  std::vector<float> y(residual.size()), expected(residual.size());
  Projection::forward(nullptr, {rows, in, out}, x.data(), weight.data(), bias.data(), residual.data(), y.data(),
                      nullptr);
  kernels().sequence->add_row(rows, out, residual.data(), bias.data(), expected.data());
  kernels().matmul(rows, out, in, {x.data(), in, 1}, weight.data(), out, expected.data(), out, Start::output);
  BOOST_TEST((y == expected));
}

// More rows than one piece of the head holds.
BOOST_AUTO_TEST_CASE(head_has_the_slopes_that_differences_show) {
  Prng prng(7);
  const long width = 6, vocabulary = 40, batch = 3, context = 200;
  std::vector<Token> tokens(batch * (context + 1));
  for (Token& token : tokens) token = static_cast<Token>(prng.below(vocabulary));
  const TokenBatch rows{tokens.data(), batch, context};
  std::vector<float> x = draw(prng, rows.rows() * width, 4), table = draw(prng, vocabulary * width),
                     x_change(x.size()), gradient(table.size(), 99.0f);
  every_way([&](Parallel* parallel) {
    TiedHead head;
    const TiedHead::Gradients gradients{x_change.data(), gradient.data()};
    const double loss = head.loss(parallel, rows, width, vocabulary, x.data(), table.data(), &gradients);
    BOOST_TEST(loss == TiedHead().loss(parallel, rows, width, vocabulary, x.data(), table.data(), nullptr));
    return std::vector<std::vector<float>>{x_change, gradient, {static_cast<float>(loss)}};
  });
  const auto loss = [&] {
    return TiedHead().loss(nullptr, rows, width, vocabulary, x.data(), table.data(), nullptr);
  };
  for (float& g : x_change) g *= 600;  // the gradients are of the mean
  for (float& g : gradient) g *= 600;
  BOOST_TEST(worst_slope(x, x_change, loss) < 1e-3);
  BOOST_TEST(worst_slope(table, gradient, loss) < 1e-3);
}

BOOST_AUTO_TEST_CASE(embedding_gradients_of_one_token_add_up) {
  const Token tokens[] = {1, 2, 1, 0, 2, 2, 1, 0};
  const TokenBatch batch{tokens, 2, 3};  // inputs 1 2 1, 2 2 1
  const std::vector<float> table = {1, 2, 10, 20, 100, 200},
                           position = {0.5f, 0.25f, 1.5f, 1.25f, 2.5f, 2.25f};
  std::vector<float> y(12), table_gradient(6, 1.0f), position_gradient(6, 99.0f);
  embed(nullptr, batch, 2, table.data(), position.data(), y.data());
  BOOST_TEST((y == std::vector<float>{10.5f, 20.25f, 101.5f, 201.25f, 12.5f, 22.25f, 100.5f, 200.25f, 101.5f,
                                      201.25f, 12.5f, 22.25f}));
  const std::vector<float> change = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  embed_backward(nullptr, batch, 2, change.data(), table_gradient.data(), position_gradient.data());
  BOOST_TEST((table_gradient == std::vector<float>{1, 1, 18, 21, 20, 23}));
  BOOST_TEST((position_gradient == std::vector<float>{8, 10, 12, 14, 16, 18}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
