#include "models/weights/model_json.h"

#include <nlohmann/json.hpp>

#include "models/data/token_array.h"
#include "models/families/llama.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using Json = nlohmann::ordered_json;

// A whole number from 1 to 2^20; `otherwise` where there is none or null, unless that is 0.
Result<std::uint32_t> json_size(const Json& json, const char* name, const std::string& source,
                                std::uint32_t otherwise = 0) {
  const auto at = json.find(name);
  if (otherwise > 0 && (at == json.end() || at->is_null())) return otherwise;
  if (at == json.end() || !at->is_number_unsigned() || at->get<std::uint64_t>() == 0 ||
      at->get<std::uint64_t>() > 1u << 20)
    return Error{Errc::corrupt, str(source, " has no number ", name, " from 1 to ", 1u << 20)};
  return at->get<std::uint32_t>();
}

// True unless the member is there and is something else.
bool json_says(const Json& json, const char* name, const Json& expected) {
  const auto at = json.find(name);
  return at == json.end() || at->is_null() || *at == expected;
}

// ---- GPT-2

Json gpt_json(const ModelConfig& config) {
  Json json = {{"architectures", {"GPT2LMHeadModel"}},
               {"model_type", "gpt2"},
               {"vocab_size", config.vocabulary},
               {"n_positions", config.context},
               {"n_ctx", config.context},
               {"n_embd", config.embedding},
               {"n_layer", config.layers},
               {"n_head", config.heads},
               {"n_inner", nullptr},
               {"activation_function", "gelu_new"},
               {"layer_norm_epsilon", 1e-5},
               {"resid_pdrop", 0.0},
               {"embd_pdrop", 0.0},
               {"attn_pdrop", 0.0},
               {"tie_word_embeddings", config.tied_head},
               {"torch_dtype", "float32"}};
  const Json end = config.vocabulary == gpt2_vocabulary ? Json(gpt2_end_of_text) : Json();  // bytes have none
  json["bos_token_id"] = json["eos_token_id"] = end;
  return json;
}

Json lstm_json(const ModelConfig& config) {
  return {{"model_type", "lstm"},
          {"vocabulary", config.vocabulary},
          {"context", config.context},
          {"embedding", config.embedding},
          {"hidden", config.hidden}};
}

Result<ModelConfig> parse_gpt_json(const Json& json, const std::string& source) {
  ModelConfig config;
  config.family = "gpt";
  const std::pair<const char*, std::uint32_t*> sizes[] = {{"vocab_size", &config.vocabulary},
                                                          {"n_positions", &config.context},
                                                          {"n_embd", &config.embedding},
                                                          {"n_layer", &config.layers},
                                                          {"n_head", &config.heads}};
  for (const auto& [name, size] : sizes) {
    const auto value = json_size(json, name, source);
    if (!value) return value.error();
    *size = *value;
  }
  const std::pair<const char*, Json> kept[] = {
      {"activation_function", "gelu_new"},        {"scale_attn_weights", true},
      {"scale_attn_by_inverse_layer_idx", false}, {"n_inner", 4 * config.embedding},
      {"layer_norm_epsilon", 1e-5},               {"quantization_config", nullptr}};
  for (const auto& [name, value] : kept)
    if (!json_says(json, name, value))
      return Error{Errc::mismatch, str(source, " wants ", name, " = ", json[name].dump(), "; only ",
                                       value.dump(), " is computed here")};
  config.tied_head = json_says(json, "tie_word_embeddings", true);
  return config;
}

// ---- Llama, Mistral and Qwen2

Json scaling_json(const ModelConfig& config) {
  const RotaryScaling& scaling = config.rope_scaling;
  switch (scaling.kind) {
    case RotaryScaling::Kind::none:
      return nullptr;
    case RotaryScaling::Kind::linear:
      return {{"rope_type", "linear"}, {"factor", scaling.factor}};
    case RotaryScaling::Kind::llama3:
      return {{"rope_type", "llama3"},
              {"factor", scaling.factor},
              {"low_freq_factor", scaling.low},
              {"high_freq_factor", scaling.high},
              {"original_max_position_embeddings", scaling.original_context}};
  }
  return nullptr;
}

Result<double> number(const Json& json, const char* name, const std::string& source, double otherwise) {
  const auto at = json.find(name);
  if (at == json.end() || at->is_null()) return otherwise;
  if (!at->is_number() || !(at->get<double>() > 0) || at->get<double>() > 1e12)
    return Error{Errc::corrupt, str(source, " has no number ", name, " above 0")};
  return at->get<double>();
}

// In: rope_scaling, or rope_parameters of newer versions. "type" is the older name of "rope_type".
Result<RotaryScaling> scaling_of(const Json& json, const std::string& source) {
  RotaryScaling scaling;
  if (!json.is_object()) return scaling;
  const Json type = json.value("rope_type", json.value("type", Json("default")));
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3")
    return Error{Errc::mismatch, str(source, " wants rope_scaling of type ", type.dump(),
                                     "; only \"default\", \"linear\" and \"llama3\" are computed here")};
  scaling.kind = type == "linear" ? RotaryScaling::Kind::linear : RotaryScaling::Kind::llama3;
  const auto factor = number(json, "factor", source, 1), low = number(json, "low_freq_factor", source, 1),
             high = number(json, "high_freq_factor", source, 4);
  for (const auto* one : {&factor, &low, &high})
    if (!*one) return one->error();
  const auto original = json_size(json, "original_max_position_embeddings", source, 8192);
  if (!original) return original.error();
  scaling.factor = *factor;
  scaling.low = *low;
  scaling.high = *high;
  scaling.original_context = *original;
  return scaling;
}

// Errors: Errc::mismatch, naming the member that asks for what is not computed here.
Result<void> check_supported(const Json& json, const std::string& source) {
  const std::pair<const char*, Json> kept[] = {
      {"hidden_act", "silu"},      {"attention_bias", false},         {"mlp_bias", false},
      {"pretraining_tp", 1},       {"quantization_config", nullptr},  {"num_local_experts", nullptr},
      {"use_sliding_window", false}};
  for (const auto& [name, value] : kept)
    if (!json_says(json, name, value))
      return Error{Errc::mismatch, str(source, " wants ", name, " = ", json[name].dump(), "; only ", value.dump(),
                                       " is computed here")};
  // Qwen2 names a window that it does not use.
  if (json.value("use_sliding_window", Json()).is_null() && !json_says(json, "sliding_window", nullptr))
    return Error{Errc::mismatch, str(source, " wants sliding_window = ", json["sliding_window"].dump(),
                                     "; attention without a window is all that is computed here")};
  return {};
}

Result<void> read_sizes(const Json& json, const std::string& type, const std::string& source, ModelConfig& config) {
  const auto heads = json_size(json, "num_attention_heads", source);
  if (!heads) return heads.error();
  const std::tuple<const char*, std::uint32_t*, std::uint32_t> sizes[] = {
      {"vocab_size", &config.vocabulary, 0},
      {"max_position_embeddings", &config.positions, 0},
      {"hidden_size", &config.embedding, 0},
      {"num_hidden_layers", &config.layers, 0},
      {"num_attention_heads", &config.heads, 0},
      {"intermediate_size", &config.feed_forward, 0},
      {"num_key_value_heads", &config.kv_heads, type == "llama" ? *heads : 0}};
  for (const auto& [name, size, otherwise] : sizes) {
    const auto value = json_size(json, name, source, otherwise);
    if (!value) return value.error();
    *size = *value;
  }
  const auto head_size = json_size(json, "head_dim", source, std::max(config.embedding / *heads, 1u));
  if (!head_size) return head_size.error();
  config.head_size = *head_size;
  return {};
}

Json llama_json(const ModelConfig& config) {
  const auto complete = complete_llama(config);
  const ModelConfig& c = complete ? *complete : config;
  Json json = {{"architectures", {c.qkv_bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
               {"model_type", c.qkv_bias ? "qwen2" : "llama"},
               {"vocab_size", c.vocabulary},
               {"max_position_embeddings", std::max(c.context, c.positions)},
               {"hidden_size", c.embedding},
               {"intermediate_size", c.feed_forward},
               {"num_hidden_layers", c.layers},
               {"num_attention_heads", c.heads},
               {"num_key_value_heads", c.kv_heads},
               {"head_dim", c.head_size},
               {"hidden_act", "silu"},
               {"rms_norm_eps", c.norm_epsilon},
               {"rope_theta", c.rope_base},
               {"rope_scaling", scaling_json(c)},
               {"attention_dropout", 0.0},
               {"tie_word_embeddings", c.tied_head},
               {"torch_dtype", "float32"},
               {"bos_token_id", nullptr},
               {"eos_token_id", nullptr}};
  if (c.qkv_bias) {
    json["use_sliding_window"] = false;
  } else {
    json["attention_bias"] = json["mlp_bias"] = false;
  }
  return json;
}

Result<ModelConfig> parse_llama_json(const Json& json, const std::string& type, const std::string& source) {
  if (auto supported = check_supported(json, source); !supported) return supported.error();
  ModelConfig config;
  config.family = "llama";
  if (auto read = read_sizes(json, type, source, config); !read) return read.error();
  const auto newer = json.find("rope_parameters");
  const Json& rope = newer != json.end() && newer->is_object() ? *newer : json;
  const auto scaling = scaling_of(newer != json.end() ? *newer : json.value("rope_scaling", Json()), source);
  if (!scaling) return scaling.error();
  const auto base = number(rope, "rope_theta", source, 10'000), epsilon = number(json, "rms_norm_eps", source, 1e-6);
  if (!base) return base.error();
  if (!epsilon) return epsilon.error();
  config.context = config.positions;
  config.rope_scaling = *scaling;
  config.rope_base = *base;
  config.norm_epsilon = *epsilon;
  config.tied_head = json.value("tie_word_embeddings", Json()) == true;
  config.qkv_bias = type == "qwen2";
  if (const auto complete = complete_llama(config); !complete)
    return Error{Errc::mismatch, str(source, ": ", complete.error().text)};
  return config;
}

}  // namespace

std::string model_json(const ModelConfig& config) {
  if (config.family == "gpt") return gpt_json(config).dump(2) + "\n";
  if (config.family == "llama") return llama_json(config).dump(2) + "\n";
  if (config.family == "lstm") return lstm_json(config).dump(2) + "\n";
  Json json = {{"model_type", config.family}, {"inputs", config.inputs}, {"classes", config.classes}};
  if (config.channels > 0)
    json["picture"] = {{"channels", config.channels}, {"height", config.height}, {"width", config.width}};
  if (config.family == "mlp") json["hidden"] = config.hidden;
  return json.dump(2) + "\n";
}

Result<ModelConfig> parse_model_json(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return Error{Errc::corrupt, source + " is not a JSON object"};
  const Json type = json.value("model_type", Json());
  if (type == "gpt2") return parse_gpt_json(json, source);
  if (type == "llama" || type == "mistral" || type == "qwen2")
    return parse_llama_json(json, type.get<std::string>(), source);
  return Error{Errc::mismatch, str(source, " is of model_type ", type.dump(),
                                   "; only gpt2, llama, mistral and qwen2 are supported")};
}

bool is_own_model_json(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  const Json type = json.is_object() ? json.value("model_type", Json()) : Json();
  return type == "mlp" || type == "cnn" || type == "lstm";
}

}  // namespace rumor::models
