// Adapters: names as in PEFT, loss and gradient against PyTorch (golden_lora.py) and differences, equal bits, merging.
#include "models/families/adapters.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/models/families/golden_lora.h"
#include "tests/unit/models/families/gpt_config.h"
#include "tests/unit/models/families/language_checks.h"
#include "tests/unit/models/families/llama_config.h"

namespace rumor::models {
namespace {

using namespace test;

ModelConfig adaptable_llama() {
  ModelConfig config = gpt_config(37, 71, 2, 6, 24);
  config.family = "llama";
  config.kv_heads = 3;
  config.head_size = 10;
  config.feed_forward = 21;
  config.qkv_bias = true;
  return config;
}

std::shared_ptr<const FrozenBase> base_of(std::vector<float> weights) {
  return std::make_shared<FrozenBase>(FrozenBase{std::move(weights), {}});
}

// `whole` with adapters, its weights drawn.
ModelConfig adapted(ModelConfig whole, std::uint32_t rank, double alpha, std::vector<std::string> targets = {}) {
  const auto model = make_model(whole).value();
  Prng prng(5);
  whole.adapter = {"lora", rank, alpha, std::move(targets), base_of(draw(prng, model->layout().params(), 0.3))};
  return whole;
}

// As golden_llama.py, with the base's values.
ModelConfig golden_adapted() {
  ModelConfig config = golden_llama();
  const auto whole = make_model(config).value();
  std::vector<float> weights = values(whole->layout().params(), 37, 101, 64);
  for (const TensorInfo& tensor : whole->layout().tensors())
    for (std::uint32_t i = 0; tensor.name.find("norm") != std::string::npos && i < tensor.size; ++i)
      weights[tensor.offset + i] += 1;
  config.adapter = {"lora", 3, 6, {"q_proj", "v_proj", "mlp.down_proj"}, base_of(std::move(weights))};
  return config;
}

std::string adapter_refusal(const ModelConfig& config) {
  const auto made = make_model(config);
  return made ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adapters)

BOOST_AUTO_TEST_CASE(tensors_are_named_and_shaped_as_in_peft) {
  const auto llama = make_model(adapted(adaptable_llama(), 4, 8)).value();
  const std::vector<TensorInfo>& all = llama->layout().tensors();
  BOOST_TEST_REQUIRE(all.size() == 8u);
  BOOST_TEST(describe(all[0]) == "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight (4 x 24)");
  BOOST_TEST(describe(all[1]) == "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight (60 x 4)");
  BOOST_TEST(describe(all[3]) == "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight (30 x 4)");
  BOOST_TEST(describe(all[4]) == "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight (4 x 24)");
  const auto gpt = make_model(adapted(gpt_config(11, 6, 1, 2, 4), 2, 8)).value();
  BOOST_TEST(gpt->layout().params() == 2u * 4 + 12 * 2);
  BOOST_TEST(gpt->layout().tensors()[1].name == "base_model.model.transformer.h.0.attn.c_attn.lora_B.weight");
}

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_pytorchs) {
  const auto model = make_model(golden_adapted()).value();
  const std::vector<float> params = values(model->layout().params(), 29, 97, 64);
  std::vector<float> gradient(params.size(), 99.0f);
  std::vector<Token> tokens(14);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i * 7 % 11);
  const float loss = model->loss_and_gradient(params, batch_of(tokens, 2), gradient);
  BOOST_TEST(std::abs(static_cast<double>(loss) - golden::lora_loss) < 1e-5);
  BOOST_TEST(worst(gradient, golden::lora_gradient) < 1e-5);
}

BOOST_AUTO_TEST_CASE(gradient_agrees_with_differences) {
  check_slopes(adapted(adaptable_llama(), 4, 8), 3);
  check_slopes(adapted(adaptable_llama(), 3, 1, {"k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}), 2);
  check_slopes(adapted(gpt_config(37, 21, 2, 3, 24), 4, 8), 3);
  check_slopes(adapted(gpt_config(37, 21, 2, 3, 24), 5, 3, {"attn.c_proj", "c_fc", "mlp.c_proj"}), 2);
}

BOOST_AUTO_TEST_CASE(bits_are_equal_for_all_kernels_threads_and_histories) {
  check_bits(adapted(adaptable_llama(), 4, 8, {"q_proj", "k_proj", "down_proj"}));
  check_bits(adapted(gpt_config(50, 70, 2, 2, 24), 4, 8, {"c_attn", "c_fc", "c_proj"}));
}

// B is zero, so that the model is the frozen one; A is uniform in +-1 / sqrt(inputs).
BOOST_AUTO_TEST_CASE(adapters_begin_as_the_frozen_model) {
  const ModelConfig config = adapted(adaptable_llama(), 4, 8);
  const auto model = make_model(config).value(), whole = make_model(adaptable_llama()).value();
  const std::vector<float> params = initial_of(*model);
  double squares = 0;
  for (const TensorInfo& tensor : model->layout().tensors()) {
    const std::span<const float> part = std::span(params).subspan(tensor.offset, tensor.size);
    for (const float value : part) {
      const bool is_a = tensor.name.ends_with("lora_A.weight");
      BOOST_TEST(std::abs(value) <= (is_a ? 0.20413f : 0.0f));
      if (is_a) squares += static_cast<double>(value * value) / (2 * 2 * 4 * 24);
    }
  }
  BOOST_TEST(std::abs(squares - 1.0 / 72) < 0.0015);
  Prng prng(1);
  const std::vector<Token> tokens = draw_tokens(prng, 37, 72);
  BOOST_TEST(model->evaluate(params, batch_of(tokens, 1)).loss ==
             whole->evaluate(config.adapter.base->weights, batch_of(tokens, 1)).loss);
}

BOOST_AUTO_TEST_CASE(merged_weights_predict_the_same) {
  for (const ModelConfig& config :
       {adapted(adaptable_llama(), 4, 8, {"q_proj", "v_proj", "o_proj", "up_proj", "down_proj"}),
        adapted(gpt_config(37, 71, 2, 2, 24), 4, 8, {"c_attn", "c_fc", "c_proj"})}) {
    ModelConfig frozen = config;
    frozen.adapter = {};
    const auto model = make_model(config).value(), whole = make_model(frozen).value();
    Prng prng(2);
    const std::vector<Token> tokens = draw_tokens(prng, 37, 72);
    const std::vector<float> params = draw(prng, model->layout().params(), 0.5);
    std::vector<float> merged = config.adapter.base->weights, one(model->predictions(1)), other(one.size());
    merge_adapters(plan_adapters(config, *whole).value(), params, merged);
    model->predict(params, batch_of(tokens, 1), one);
    whole->predict(merged, batch_of(tokens, 1), other);
    BOOST_TEST(worst(one, other) < 1e-5);
    whole->predict(config.adapter.base->weights, batch_of(tokens, 1), other);
    BOOST_TEST(worst(one, other) > 3e-3);
  }
}

BOOST_AUTO_TEST_CASE(refusals_name_the_cause) {
  ModelConfig config = adapted(adaptable_llama(), 4, 8, {"q_proj", "query"});
  BOOST_TEST(adapter_refusal(config) ==
             "model.adapter_targets: this model has no projection query; it has q_proj, k_proj, v_proj, o_proj, "
             "gate_proj, up_proj, down_proj");
  config = adapted(adaptable_llama(), 4, 8);
  config.vocabulary = 38;
  BOOST_TEST(adapter_refusal(config).find("is its vocabulary that of the data?") != std::string::npos);
  config.units = {0, 1};
  BOOST_TEST(adapter_refusal(config).find("set pipeline.stages = 1") != std::string::npos);
  config = adapted(adaptable_llama(), 4, 8);
  config.adapter.base = nullptr;
  BOOST_TEST(adapter_refusal(config).find("--weights") != std::string::npos);
  config.family = "lstm";
  config.hidden = {8};
  BOOST_TEST(adapter_refusal(config).starts_with("model.adapter = \"lora\" is for models of family gpt and llama"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
