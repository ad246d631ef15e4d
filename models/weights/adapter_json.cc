#include "models/weights/adapter_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using AdapterMembers = nlohmann::ordered_json;

// Errors: Errc::mismatch, naming a member that asks for more than is computed here.
Result<void> check_adapter_members(const AdapterMembers& json, const std::string& source) {
  const std::pair<const char*, AdapterMembers> kept[] = {
      {"peft_type", "LORA"},        {"bias", "none"},           {"use_rslora", false},
      {"use_dora", false},          {"modules_to_save", nullptr}, {"layers_to_transform", nullptr},
      {"rank_pattern", AdapterMembers::object()}, {"alpha_pattern", AdapterMembers::object()}};
  for (const auto& [name, value] : kept) {
    const auto at = json.find(name);
    if (at != json.end() && !at->is_null() && *at != value)
      return Error{Errc::mismatch,
                   str(source, " wants ", name, " = ", at->dump(), "; only ", value.dump(), " is computed here")};
  }
  return {};
}

}  // namespace

std::string adapter_json(const AdapterDescription& description) {
  const AdapterConfig& adapter = description.adapter;
  const bool gpt = description.family == "gpt";
  AdapterMembers json = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", description.base},
      {"r", adapter.rank},
      {"lora_alpha", adapter.alpha},
      {"target_modules", adapter.targets.empty() ? usual_adapter_targets(description.family) : adapter.targets},
      {"fan_in_fan_out", gpt},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"use_rslora", false},
      {"use_dora", false},
      {"init_lora_weights", true},
      {"modules_to_save", nullptr},
      {"inference_mode", true}};
  if (adapter.alpha == std::floor(adapter.alpha)) json["lora_alpha"] = static_cast<std::uint64_t>(adapter.alpha);
  if (!description.base_hash.empty()) json["base_sha256"] = description.base_hash;
  // A path may be no UTF-8.
  return json.dump(2, ' ', false, AdapterMembers::error_handler_t::replace) + "\n";
}

Result<AdapterDescription> parse_adapter_json(std::string_view text, const std::string& source) {
  const AdapterMembers json = AdapterMembers::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return Error{Errc::corrupt, source + " is not a JSON object"};
  if (auto fine = check_adapter_members(json, source); !fine) return fine.error();
  AdapterDescription description;
  const auto rank = json.find("r"), alpha = json.find("lora_alpha"), targets = json.find("target_modules");
  if (rank == json.end() || !rank->is_number_unsigned() || rank->get<std::uint64_t>() == 0 ||
      rank->get<std::uint64_t>() > 4096)
    return Error{Errc::corrupt, source + " has no number r from 1 to 4096"};
  if (alpha == json.end() || !alpha->is_number() || !(alpha->get<double>() > 0) || alpha->get<double>() > 1e6)
    return Error{Errc::corrupt, source + " has no number lora_alpha above 0"};
  if (targets == json.end() || !targets->is_array() || targets->empty())
    return Error{Errc::corrupt, source + " has no list target_modules"};
  for (const AdapterMembers& target : *targets) {
    if (!target.is_string()) return Error{Errc::corrupt, source + " has a target_modules that is no list of names"};
    description.adapter.targets.push_back(target.get<std::string>());
  }
  const auto text_of = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  description.family = json.value("fan_in_fan_out", AdapterMembers()) == true ? "gpt" : "llama";
  description.adapter.kind = "lora";
  description.adapter.rank = rank->get<std::uint32_t>();
  description.adapter.alpha = alpha->get<double>();
  description.base = text_of("base_model_name_or_path");
  description.base_hash = text_of("base_sha256");
  return description;
}

}  // namespace rumor::models
