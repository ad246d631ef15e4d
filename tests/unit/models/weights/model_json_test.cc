// config.json of Llama, Mistral and Qwen2, as transformers writes it.
#include "models/weights/model_json.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace rumor::models {
namespace {

// Written by transformers 5; older versions have rope_theta and rope_scaling outside.
const std::string llama_text = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "dtype": "float32",
  "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "max_position_embeddings": 256,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 3,
  "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
  "rope_parameters": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                      "original_max_position_embeddings": 64, "rope_theta": 5000.0, "rope_type": "llama3"},
  "tie_word_embeddings": false, "vocab_size": 256})";

const std::string qwen_text = R"({
  "hidden_act": "silu", "hidden_size": 48, "intermediate_size": 96, "max_position_embeddings": 512,
  "model_type": "qwen2", "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 3,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "rope_scaling": {"type": "linear", "factor": 2.0},
  "sliding_window": 4096, "use_sliding_window": false, "tie_word_embeddings": true, "vocab_size": 300})";

std::string with(std::string text, const std::string& old, const std::string& other) {
  BOOST_REQUIRE(text.find(old) != std::string::npos);
  return text.replace(text.find(old), old.size(), other);
}

std::string json_refusal(const std::string& text) {
  const auto parsed = parse_model_json(text, "c.json");
  return parsed ? "" : parsed.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model_json_of_llamas)

BOOST_AUTO_TEST_CASE(what_transformers_writes_is_read_and_ours_says_the_same) {
  const ModelConfig read = parse_model_json(llama_text, "c.json").value();
  for (const ModelConfig& config : {read, parse_model_json(model_json(read), "ours").value()}) {
    BOOST_TEST(config.family == "llama");
    BOOST_TEST((config.vocabulary == 256 && config.context == 256 && config.positions == 256));
    BOOST_TEST((config.embedding == 64 && config.layers == 3 && config.heads == 4 && config.kv_heads == 2));
    BOOST_TEST((config.head_size == 16 && config.feed_forward == 96));
    BOOST_TEST((config.rope_scaling == RotaryScaling{RotaryScaling::Kind::llama3, 8, 1, 4, 64}));
    BOOST_TEST((config.rope_base == 5000 && config.norm_epsilon == 1e-6));
    BOOST_TEST((!config.tied_head && !config.qkv_bias));
  }
}

BOOST_AUTO_TEST_CASE(qwen2_has_biases_and_names_a_window_that_it_does_not_use) {
  const ModelConfig read = parse_model_json(qwen_text, "c.json").value();
  for (const ModelConfig& config : {read, parse_model_json(model_json(read), "ours").value()}) {
    BOOST_TEST((config.qkv_bias && config.tied_head));
    BOOST_TEST((config.head_size == 8 && config.kv_heads == 3));
    BOOST_TEST((config.rope_scaling == RotaryScaling{RotaryScaling::Kind::linear, 2, 1, 4, 8192}));
    BOOST_TEST(config.rope_base == 1e6);
  }
}

BOOST_AUTO_TEST_CASE(a_gpts_head_may_have_its_own_table) {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 300;
  for (const bool tied : {true, false}) {
    config.tied_head = tied;
    BOOST_TEST(parse_model_json(model_json(config), "ours").value().tied_head == tied);
  }
  BOOST_TEST(parse_model_json(with(model_json(config), R"("tie_word_embeddings": false)", R"("tie": 0)"), "older")
                 .value()
                 .tied_head);
}

// A fine-tuned Llama keeps the length that it was made for.
BOOST_AUTO_TEST_CASE(a_shorter_context_does_not_shorten_the_positions) {
  ModelConfig config = parse_model_json(llama_text, "c.json").value();
  config.context = 32;
  BOOST_TEST(parse_model_json(model_json(config), "ours").value().positions == 256u);
}

BOOST_AUTO_TEST_CASE(what_is_not_computed_here_is_refused_by_its_name) {
  BOOST_TEST(json_refusal(with(llama_text, R"("model_type": "llama")", R"("model_type": "mixtral")")) ==
             "c.json is of model_type \"mixtral\"; only gpt2, llama, mistral and qwen2 are supported");
  BOOST_TEST(json_refusal(with(qwen_text, R"("use_sliding_window": false)", R"("use_sliding_window": true)")) ==
             "c.json wants use_sliding_window = true; only false is computed here");
  const std::string mistral = with(llama_text, R"("model_type": "llama")", R"("model_type": "mistral")");
  BOOST_TEST(json_refusal(mistral).empty());
  BOOST_TEST(json_refusal(with(mistral, R"("mlp_bias": false)", R"("sliding_window": 4096)")) ==
             "c.json wants sliding_window = 4096; attention without a window is all that is computed here");
  BOOST_TEST(json_refusal(with(llama_text, R"("mlp_bias": false)", R"("quantization_config": {"bits": 4})")) ==
             "c.json wants quantization_config = {\"bits\":4}; only null is computed here");
  BOOST_TEST(json_refusal(with(llama_text, R"("rope_type": "llama3")", R"("rope_type": "yarn")")) ==
             "c.json wants rope_scaling of type \"yarn\"; only \"default\", \"linear\" and \"llama3\" are computed "
             "here");
  BOOST_TEST(json_refusal(with(llama_text, R"("num_key_value_heads": 2)", R"("num_key_value_heads": 3)")) ==
             "c.json: model.kv_heads = 3: must divide model.heads (4)");
  BOOST_TEST(json_refusal(with(llama_text, R"("hidden_size": 64)", R"("hidden_size": "64")")) ==
             "c.json has no number hidden_size from 1 to 1048576");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
