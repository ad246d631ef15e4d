// A whole Llama: names and shapes, loss and gradient against PyTorch (golden_llama.py), equal bits, initial weights.
#include "models/families/llama.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/decoders/llama_decoder.h"
#include "tests/unit/models/families/golden_llama.h"
#include "tests/unit/models/families/language_checks.h"
#include "tests/unit/models/families/llama_config.h"

namespace rumor::models {
namespace {

using namespace test;

std::string llama_refusal(const ModelConfig& config) {
  const auto made = make_model(config);
  return made ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(llama)

// Llama 3.2 1B: 1,235,814,400 parameters with its tied head.
BOOST_AUTO_TEST_CASE(tensors_are_named_and_shaped_as_in_llama_for_causal_lm) {
  ModelConfig config = llama_config(128'256, 8192, 32, 8, 2048);
  config.layers = 16;
  config.feed_forward = 8192;
  BOOST_TEST(llama_layout(config).value().params() == 1'235'814'400u);
  config.tied_head = false;
  config.qkv_bias = true;
  const ParamLayout layout = llama_layout(config).value();
  using Extents = std::vector<std::uint32_t>;
  const std::pair<const char*, Extents> expected[] = {
      {"model.embed_tokens.weight", {128256, 2048}},
      {"model.layers.0.self_attn.q_proj.weight", {2048, 2048}},
      {"model.layers.0.self_attn.q_proj.bias", {2048}},
      {"model.layers.0.self_attn.k_proj.weight", {512, 2048}},
      {"model.layers.0.self_attn.k_proj.bias", {512}},
      {"model.layers.0.self_attn.v_proj.weight", {512, 2048}},
      {"model.layers.0.self_attn.v_proj.bias", {512}},
      {"model.layers.0.self_attn.o_proj.weight", {2048, 2048}},
      {"model.layers.0.mlp.gate_proj.weight", {8192, 2048}},
      {"model.layers.0.mlp.up_proj.weight", {8192, 2048}},
      {"model.layers.0.mlp.down_proj.weight", {2048, 8192}},
      {"model.layers.0.input_layernorm.weight", {2048}},
      {"model.layers.0.post_attention_layernorm.weight", {2048}},
      {"model.layers.1.self_attn.q_proj.weight", {2048, 2048}},
  };
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    BOOST_TEST(layout.tensors()[i].name == expected[i].first);
    BOOST_TEST((layout.tensors()[i].shape == expected[i].second), layout.tensors()[i].name);
  }
  const std::vector<TensorInfo>& all = layout.tensors();
  BOOST_TEST(all[all.size() - 2].name == "model.norm.weight");
  BOOST_TEST(all.back().name == "lm_head.weight");
}

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_pytorchs) {
  const auto model = std::move(make_model(golden_llama())).value();
  std::vector<float> params = values(model->layout().params(), 37, 101, 64), gradient(params.size(), 99.0f);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    if (tensor.name.find("norm") == std::string::npos) continue;
    for (std::uint32_t i = 0; i < tensor.size; ++i) params[tensor.offset + i] += 1;
  }
  std::vector<Token> tokens(14);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * 7 % 11);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    const float loss = model->loss_and_gradient(params, batch_of(tokens, 2), gradient);
    BOOST_TEST(std::abs(static_cast<double>(loss) - golden::llama_loss) < 3e-6);
    BOOST_TEST(worst(gradient, golden::llama_gradient) < 1e-5);
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

// At sizes where blocks, heads and lanes have uneven ends; with a head of its own and a tied one.
BOOST_AUTO_TEST_CASE(gradient_agrees_with_differences) {
  ModelConfig config = llama_config(37, 71, 6, 3, 24);
  check_slopes(config, 3);
  config.tied_head = false;
  config.qkv_bias = true;
  config.head_size = 10;
  config.feed_forward = 21;
  check_slopes(config, 2);
}

BOOST_AUTO_TEST_CASE(bits_are_equal_for_all_kernels_threads_and_histories) {
  ModelConfig config = llama_config(50, 70, 4, 2, 24);
  config.qkv_bias = true;
  check_bits(config);
}

BOOST_AUTO_TEST_CASE(weights_begin_as_usual_and_know_nothing) {
  ModelConfig config = llama_config(256, 32, 4, 2, 64);
  config.layers = 8;
  config.tied_head = false;
  config.qkv_bias = true;
  const auto model = std::move(make_model(config)).value();
  const std::vector<float> params = initial_of(*model);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    const std::span<const float> part = std::span(params).subspan(tensor.offset, tensor.size);
    if (tensor.shape.size() == 1) {
      const float each = tensor.name.ends_with("weight") ? 1.0f : 0.0f;
      BOOST_TEST(std::all_of(part.begin(), part.end(), [each](float x) { return x == each; }), tensor.name);
      continue;
    }
    double squares = 0;
    for (const float x : part) squares += static_cast<double>(x) * static_cast<double>(x);
    const bool feeds_sum = tensor.name.ends_with("o_proj.weight") || tensor.name.ends_with("down_proj.weight");
    const double deviation = std::sqrt(squares / tensor.size), expected = feeds_sum ? 0.02 / 4 : 0.02;
    BOOST_TEST(std::abs(deviation / expected - 1) < 0.05, tensor.name << " " << deviation);
    const bool is_table = tensor.name.find("embed_tokens") == 6 || tensor.name.starts_with("lm_head");
    BOOST_TEST(model->hidden_matrices(tensor) == (is_table ? 0u : 1u), tensor.name);
  }
  Prng prng(1);
  const std::vector<Token> tokens = draw_tokens(prng, 256, 4 * 33);
  BOOST_TEST(std::abs(model->evaluate(params, batch_of(tokens, 4)).loss - std::log(256.0)) < 0.1);
}

// Token after token, with the same likelihoods as the model; a full context keeps its newer half.
BOOST_AUTO_TEST_CASE(the_decoder_predicts_as_the_model_does) {
  const ModelConfig config = golden_llama();
  const auto model = std::move(make_model(config)).value();
  Prng prng(5);
  const std::vector<float> params = draw(prng, model->layout().params(), 0.5);
  const std::vector<Token> tokens = draw_tokens(prng, 11, 7);
  std::vector<float> expected(model->predictions(1));
  model->predict(params, batch_of(tokens, 1), expected);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    LlamaDecoder decoder(llama_shape(config), params);
    for (std::size_t place = 0; place < 6; ++place) {
      const std::span<const float> logits = decoder.read(tokens[place]);
      double sum = 0;
      for (const float z : logits) sum += std::exp(static_cast<double>(z));
      for (std::size_t token = 0; token < 11; ++token)
        BOOST_TEST(std::abs(std::exp(static_cast<double>(logits[token])) / sum -
                            static_cast<double>(expected[place * 11 + token])) < 1e-6);
    }
    LlamaDecoder fresh(llama_shape(config), params);
    for (std::size_t place = 3; place < 6; ++place) fresh.read(tokens[place]);
    const std::span<const float> after = fresh.read(tokens[6]), whole = decoder.read(tokens[6]);
    BOOST_TEST(std::equal(after.begin(), after.end(), whole.begin(), whole.end()));
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_CASE(open_sizes_are_filled_in_and_bad_ones_refused_with_the_key) {
  const ModelConfig complete = complete_llama(llama_config(11, 6, 4, 0, 24)).value();
  BOOST_TEST(complete.kv_heads == 4u);
  BOOST_TEST(complete.head_size == 6u);
  BOOST_TEST(complete.feed_forward == 64u);
  BOOST_TEST(llama_refusal(llama_config(11, 6, 4, 3, 24)) == "model.kv_heads = 3: must divide model.heads (4)");
  BOOST_TEST(llama_refusal(llama_config(11, 6, 5, 0, 24)) ==
             "model.embedding = 24: must be a multiple of model.heads (5)");
  BOOST_TEST(llama_refusal(llama_config(11, 6, 8, 0, 24)) ==
             "model.head_size = 3: must be even, since positions rotate pairs; change model.heads or model.embedding");
  BOOST_TEST(llama_refusal(llama_config(0, 6, 4, 0, 24)).find("data.kind") != std::string::npos);
  BOOST_TEST(llama_refusal(llama_config(2'000'000, 6, 4, 0, 24)) ==
             "a llama needs a vocabulary of 2 to 1048576, not 2000000");
  ModelConfig scaled = llama_config(11, 6, 4, 0, 24);
  scaled.rope_scaling.factor = 0.5;
  BOOST_TEST(llama_refusal(scaled).find("model.rope_scaling") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
