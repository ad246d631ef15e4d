// A whole GPT: names and shapes, loss and gradient against PyTorch (golden_gpt.py), equal bits, initial
// weights.
#include "models/families/gpt.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/models/families/golden_gpt.h"
#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/families/language_checks.h"

namespace rumor::models {
namespace {

using namespace test;

}  // namespace

BOOST_AUTO_TEST_SUITE(gpt)

BOOST_AUTO_TEST_CASE(tensors_are_named_and_shaped_as_in_gpt2_lm_head_model) {
  const auto layout = gpt_layout(gpt_config(50257, 1024, 12, 12, 768));
  BOOST_REQUIRE(layout.ok());
  BOOST_TEST(layout->params() == 124'439'808u);
  const std::vector<TensorInfo>& tensors = layout->tensors();
  BOOST_REQUIRE(tensors.size() == 2u + 12 * 12 + 2);
  using Extents = std::vector<std::uint32_t>;
  const std::pair<const char*, Extents> expected[] = {
      {"transformer.wte.weight", {50257, 768}},
      {"transformer.wpe.weight", {1024, 768}},
      {"transformer.h.0.ln_1.weight", {768}},
      {"transformer.h.0.ln_1.bias", {768}},
      {"transformer.h.0.attn.c_attn.weight", {768, 2304}},
      {"transformer.h.0.attn.c_attn.bias", {2304}},
      {"transformer.h.0.attn.c_proj.weight", {768, 768}},
      {"transformer.h.0.attn.c_proj.bias", {768}},
      {"transformer.h.0.ln_2.weight", {768}},
      {"transformer.h.0.ln_2.bias", {768}},
      {"transformer.h.0.mlp.c_fc.weight", {768, 3072}},
      {"transformer.h.0.mlp.c_fc.bias", {3072}},
      {"transformer.h.0.mlp.c_proj.weight", {3072, 768}},
      {"transformer.h.0.mlp.c_proj.bias", {768}},
      {"transformer.h.1.ln_1.weight", {768}},
  };
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    BOOST_TEST(tensors[i].name == expected[i].first);
    BOOST_TEST((tensors[i].shape == expected[i].second), tensors[i].name);
  }
  BOOST_TEST(tensors.back().name == "transformer.ln_f.bias");
}

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_pytorchs) {
  const auto model = std::move(make_model(gpt_config(11, 6, 2, 2, 4))).value();
  std::vector<float> params = values(model->layout().params(), 37, 101, 64), gradient(params.size(), 99.0f);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    if (tensor.name.find(".ln_") == std::string::npos || tensor.name.find("weight") == std::string::npos)
      continue;
    for (std::uint32_t i = 0; i < tensor.size; ++i) params[tensor.offset + i] += 1;
  }
  std::vector<Token> tokens(14);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * 7 % 11);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    const float loss = model->loss_and_gradient(params, batch_of(tokens, 2), gradient);
    BOOST_TEST(std::abs(static_cast<double>(loss) - golden::gpt_loss) < 2e-6);
    BOOST_TEST(worst(gradient, golden::gpt_gradient) < 5e-6);
    const Evaluation evaluation = model->evaluate(params, batch_of(tokens, 2));
    BOOST_TEST(static_cast<float>(evaluation.loss) == loss);
    BOOST_TEST(!evaluation.accuracy.has_value());
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

// At a size where blocks, heads and lanes have uneven ends.
BOOST_AUTO_TEST_CASE(gradient_agrees_with_differences) {
  ModelConfig config = gpt_config(37, 71, 2, 3, 21);
  check_slopes(config, 3);
  config.tied_head = false;
  check_slopes(config, 3);
}

BOOST_AUTO_TEST_CASE(a_head_with_its_own_table_comes_last_and_is_no_hidden_matrix) {
  ModelConfig config = gpt_config(37, 71, 2, 3, 21);
  config.tied_head = false;
  const auto model = std::move(make_model(config)).value();
  const TensorInfo& head = model->layout().tensors().back();
  BOOST_TEST(head.name == "lm_head.weight");
  BOOST_TEST((head.shape == std::vector<std::uint32_t>{37, 21}));
  BOOST_TEST(model->hidden_matrices(head) == 0u);
  const auto shape = gpt_shape(model->layout(), 3);
  BOOST_REQUIRE(shape.ok());
  BOOST_TEST(shape->head == head.offset);
}

BOOST_AUTO_TEST_CASE(bits_are_equal_for_all_kernels_threads_and_histories) { check_bits(gpt_config(50, 70, 2, 2, 24)); }

BOOST_AUTO_TEST_CASE(weights_begin_as_gpt2s_and_know_nothing) {
  const ModelConfig config = gpt_config(256, 32, 8, 4, 64);
  const auto model = std::move(make_model(config)).value();
  const std::vector<float> params = initial_of(*model);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    double squares = 0, sum = 0;
    for (std::uint32_t i = 0; i < tensor.size; ++i) {
      const auto x = static_cast<double>(params[tensor.offset + i]);
      squares += x * x;
      sum += x;
    }
    const bool is_residual = tensor.name.find("c_proj.weight") != std::string::npos;
    if (tensor.shape.size() == 1) {
      const bool is_gain = tensor.name.find("weight") != std::string::npos;
      BOOST_TEST(sum == (is_gain ? static_cast<double>(tensor.size) : 0.0), tensor.name);
      BOOST_TEST(squares == sum, tensor.name);
    } else {
      const double deviation = std::sqrt(squares / tensor.size), expected = is_residual ? 0.02 / 4 : 0.02;
      BOOST_TEST(std::abs(deviation / expected - 1) < 0.05, tensor.name << " " << deviation);
    }
  }
  Prng prng(1);
  const std::vector<Token> tokens = draw_tokens(prng, 256, 4 * 33);
  BOOST_TEST(std::abs(model->evaluate(params, batch_of(tokens, 4)).loss - std::log(256.0)) < 0.1);
}

BOOST_AUTO_TEST_CASE(a_shape_is_found_with_and_without_the_prefix_and_refused_with_the_tensor) {
  std::vector<TensorInfo> tensors = gpt_layout(gpt_config(11, 6, 2, 2, 4))->tensors();
  for (TensorInfo& tensor : tensors) tensor.name = tensor.name.substr(std::string("transformer.").size());
  const auto shape = gpt_shape(std::move(ParamLayout::create(tensors)).value(), 2);
  BOOST_REQUIRE(shape.ok());
  BOOST_TEST(shape->layer.size() == 2);
  BOOST_TEST(shape->head_size() == 2);
  BOOST_TEST(shape->layer[1].narrow_bias == tensors[25].offset);
  const auto refusal = [](std::vector<TensorInfo> of, std::uint32_t heads) {
    const auto found = gpt_shape(std::move(ParamLayout::create(std::move(of))).value(), heads);
    return found ? std::string() : found.error().text;
  };
  BOOST_TEST(refusal(tensors, 3) == "an embedding of 4 cannot be split among 3 heads");
  BOOST_TEST(refusal({{"0.weight", {3, 4}}}, 1) ==
             "this is no GPT: it has no tables transformer.wte.weight and transformer.wpe.weight");
  std::vector<TensorInfo> wrong = tensors;
  wrong[4].shape = {12, 4};
  BOOST_TEST(refusal(wrong, 2) == "this is no GPT-2: tensor h.0.attn.c_attn.weight is 12 x 4, not 4 x 12");
  wrong = tensors;
  wrong.pop_back();
  BOOST_TEST(refusal(wrong, 2) == "this is no GPT-2: it has no tensor transformer.ln_f.bias");
}

BOOST_AUTO_TEST_CASE(bad_configurations_are_refused_with_a_reason) {
  const auto refusal = [](const ModelConfig& config) {
    const auto made = make_model(config);
    return made ? std::string() : made.error().text;
  };
  BOOST_TEST(refusal(gpt_config(11, 6, 2, 2, 4)).empty());
  BOOST_TEST(refusal(gpt_config(0, 6, 2, 2, 4)).find("data.kind") != std::string::npos);
  BOOST_TEST(refusal(gpt_config(2'000'000, 6, 2, 2, 4)) == "a gpt needs a vocabulary of 2 to 1048576, not 2000000");
  BOOST_TEST(refusal(gpt_config(11, 0, 2, 2, 4)) == "model.context must be from 1 to 65536, not 0");
  BOOST_TEST(refusal(gpt_config(11, 6, 0, 2, 4)) == "model.layers must be from 1 to 1024, not 0");
  BOOST_TEST(refusal(gpt_config(11, 6, 2, 3, 4)) ==
             "model.embedding (4) must be a multiple of model.heads (3)");
  BOOST_TEST(!refusal(gpt_config(50257, 1024, 1000, 64, 65536)).empty());
}

BOOST_AUTO_TEST_CASE(a_diverged_model_shows_nan_and_does_not_crash) {
  const auto model = std::move(make_model(gpt_config(11, 6, 1, 2, 4))).value();
  std::vector<float> params(model->layout().params(), std::nanf("")), gradient(params.size());
  const std::vector<Token> tokens(7, 3);
  BOOST_TEST(std::isnan(model->loss_and_gradient(params, batch_of(tokens, 1), gradient)));
  BOOST_TEST(std::isnan(gradient[0]));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
