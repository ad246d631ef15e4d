#include "models/weights/start_adapters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/weights/merged_weights.h"
#include "models/weights/safetensors.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// All adapted projections, by name.
std::vector<std::string> projections_of(const AdapterPlan& plan) {
  std::vector<std::string> names;
  for (const AdapterPlace& place : plan.places) names.push_back(place.projection);
  std::sort(names.begin(), names.end());
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += str(list.empty() ? "\"" : ", \"", name, "\"");
  return "[" + list + "]";
}

Error other_key(const std::string& path, const std::string& member, const std::string& key, const std::string& ours,
                const std::string& theirs) {
  return Error{Errc::mismatch, str(path, " has ", member, " = ", theirs, ", and this run has ", key, " = ", ours,
                                   "; set ", key, " = ", theirs, ", or start from other adapters")};
}

// Both describe adapters of one model, and so does `config`.
Result<void> check_projections(const std::string& path, const AdapterDescription& description,
                               const ModelConfig& config) {
  ModelConfig whole = config;
  whole.adapter = {};
  const auto model = make_model(whole);
  if (!model) return model.error();
  const auto ours = plan_adapters(config, **model);
  if (!ours) return ours.error();
  ModelConfig theirs = config;
  theirs.adapter.targets = description.adapter.targets;
  const auto plan = plan_adapters(theirs, **model);
  if (!plan) return Error{plan.error().code, str(path, ": ", plan.error().text)};
  if (projections_of(*plan) == projections_of(*ours)) return {};
  const auto& targets = config.adapter.targets;
  return other_key(path, "target_modules", "model.adapter_targets",
                   list_of(targets.empty() ? usual_adapter_targets(config.family) : targets),
                   list_of(description.adapter.targets));
}

// The hash of the base that adapters were trained beside, if their files say so.
Result<std::string> base_hash_of(const AdapterDescription& description, const std::string& weights) {
  if (!description.base_hash.empty()) return description.base_hash;
  const auto file = SafetensorsFile::read(weights);
  if (!file) return file.error();
  const auto at = file->metadata().find("base_sha256");
  return at == file->metadata().end() ? std::string() : at->second;
}

}  // namespace

Result<std::shared_ptr<const StartWeights>> read_start_adapters(const std::string& folder, const ModelConfig& config,
                                                                const ParamLayout& layout, int grid_bits) {
  const std::string path = folder + "/adapter_config.json", weights = folder + "/adapter_model.safetensors";
  const auto beside = adapters_beside(folder);
  if (!beside) return beside.error();
  if (!*beside)
    return Error{Errc::not_found, str("there is no ", path, "; model.adapter_start (--adapters) wants a folder of ",
                                      "adapters as rumor export and PEFT write it")};
  const AdapterDescription& description = **beside;
  const AdapterConfig& own = config.adapter;
  if (description.adapter.rank != own.rank)
    return other_key(path, "r", "model.adapter_rank", str(own.rank), str(description.adapter.rank));
  if (description.adapter.alpha != own.alpha)
    return other_key(path, "lora_alpha", "model.adapter_alpha", str(own.alpha),
                     str(description.adapter.alpha));
  if (auto same = check_projections(path, description, config); !same) return same.error();
  const auto base = base_hash_of(description, weights);
  if (!base) return base.error();
  if (const std::string hash = own.base->hash.hex(); !base->empty() && *base != hash)
    return Error{Errc::mismatch, str(weights, " belongs to a base with the SHA-256 ", base->substr(0, 16),
                                     "..., and the one in model.weights has ", hash.substr(0, 16),
                                     "...; name the base that the adapters were trained beside with --weights")};
  return read_start_weights(weights, layout, grid_bits);
}

}  // namespace rumor::models
