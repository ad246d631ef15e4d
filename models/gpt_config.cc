#include "models/gpt_config.h"

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

std::string gpt_config_json(const ModelConfig& config) {
  RUMOR_CHECK(config.family == "gpt");
  nlohmann::ordered_json json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["vocab_size"] = config.vocabulary;
  json["n_positions"] = config.context;
  json["n_embd"] = config.embedding;
  json["n_layer"] = config.layers;
  json["n_head"] = config.heads;
  json["activation_function"] = "gelu_new";
  json["layer_norm_epsilon"] = 1e-5;
  json["tie_word_embeddings"] = true;
  for (const char* dropout : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[dropout] = 0.0;
  const bool has_end = config.vocabulary == 50257;
  for (const char* mark : {"bos_token_id", "eos_token_id"})
    json[mark] = has_end ? nlohmann::json(50256) : nullptr;
  return json.dump(2) + "\n";
}

Result<std::uint32_t> heads_of_config(std::string_view text, const std::string& name) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{Errc::corrupt, str(name, " is no JSON object")};
  const auto type = json.find("model_type");
  if (type != json.end() && *type != "gpt2") return Error{Errc::mismatch, str(name, " is of no gpt2")};
  const auto activation = json.find("activation_function");
  if (activation != json.end() && *activation != "gelu_new" && *activation != "gelu_pytorch_tanh")
    return Error{Errc::mismatch,
                 str(name, ": its activation_function is not gelu_new, the only one known here")};
  const auto heads = json.find("n_head");
  if (heads == json.end() || !heads->is_number_unsigned() || *heads < 1 || *heads > 65'536)
    return Error{Errc::mismatch, str(name, " has no n_head from 1 to 65536")};
  return heads->get<std::uint32_t>();
}

}  // namespace rumor::models
