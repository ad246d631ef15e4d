#include "models/weights/model_json.h"

#include <nlohmann/json.hpp>

#include "models/data/token_array.h"
#include "models/families/gpt.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using Json = nlohmann::ordered_json;

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
               {"tie_word_embeddings", true},
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

// False when it is there and is something else.
bool says(const Json& json, const char* name, const Json& expected) {
  const auto at = json.find(name);
  return at == json.end() || at->is_null() || *at == expected;
}

}  // namespace

std::string model_json(const ModelConfig& config) {
  if (config.family == "gpt") return gpt_json(config).dump(2) + "\n";
  if (config.family == "lstm") return lstm_json(config).dump(2) + "\n";
  Json json = {{"model_type", config.family}, {"inputs", config.inputs}, {"classes", config.classes}};
  if (config.channels > 0)
    json["picture"] = {{"channels", config.channels}, {"height", config.height}, {"width", config.width}};
  if (config.family == "mlp") json["hidden"] = config.hidden;
  return json.dump(2) + "\n";
}

Result<ModelConfig> parse_gpt_json(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return Error{Errc::corrupt, source + " is not a JSON object"};
  if (json.value("model_type", Json()) != "gpt2")
    return Error{Errc::mismatch, source + " is not of a GPT-2: its model_type is another"};
  ModelConfig config;
  config.family = "gpt";
  const std::pair<const char*, std::uint32_t*> numbers[] = {{"vocab_size", &config.vocabulary},
                                                            {"n_positions", &config.context},
                                                            {"n_embd", &config.embedding},
                                                            {"n_layer", &config.layers},
                                                            {"n_head", &config.heads}};
  for (const auto& [name, value] : numbers) {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_number_unsigned() || at->get<std::uint64_t>() == 0 ||
        at->get<std::uint64_t>() > 1u << 20)
      return Error{Errc::corrupt, str(source, " has no number ", name, " from 1 to ", 1u << 20)};
    *value = at->get<std::uint32_t>();
  }
  const std::pair<const char*, Json> kept[] = {
      {"activation_function", "gelu_new"},        {"scale_attn_weights", true},
      {"scale_attn_by_inverse_layer_idx", false}, {"tie_word_embeddings", true},
      {"n_inner", 4 * config.embedding},          {"layer_norm_epsilon", 1e-5}};
  for (const auto& [name, value] : kept)
    if (!says(json, name, value))
      return Error{Errc::mismatch, str(source, " wants ", name, " = ", json[name].dump(), "; only ",
                                       value.dump(), " is computed here")};
  return config;
}

}  // namespace rumor::models
