#include "models/weights/merged_weights.h"

#include <filesystem>
#include <utility>

#include "models/data/mapped_file.h"
#include "models/weights/frozen_base.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::optional<AdapterDescription>> adapters_beside(const std::string& folder) {
  const std::string path = folder + "/adapter_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::optional<AdapterDescription>();
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  auto description = parse_adapter_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  if (!description) return description.error();
  return std::optional<AdapterDescription>(std::move(description).value());
}

Result<MergedWeights> merge_into_base(const AdapterDescription& description, const ModelConfig& whole,
                                      const ParamLayout& layout, std::span<const float> adapters,
                                      const std::string& base) {
  const std::string path = base.empty() ? description.base : base;
  if (path.empty())
    return Error{Errc::usage, "these are adapters; name the weights that they belong to with --weights FOLDER"};
  const auto model = make_model(whole);
  if (!model) return model.error();
  ModelConfig adapted = whole;
  adapted.adapter = description.adapter;
  const auto plan = plan_adapters(adapted, **model);
  if (!plan) return plan.error();
  if (plan->layout.hash() != layout.hash())
    return Error{Errc::mismatch, str("the adapters are not those that adapter_config.json beside them describes")};
  const auto frozen = read_base(path, (*model)->layout());
  if (!frozen)
    return Error{frozen.error().code, str("the base of these adapters: ", frozen.error().text,
                                          "; if it has moved, name it with --weights FOLDER")};
  if (const std::string hash = (*frozen)->hash.hex(); !description.base_hash.empty() && hash != description.base_hash)
    return Error{Errc::mismatch, str("the adapters belong to a base with the SHA-256 ",
                                     description.base_hash.substr(0, 16), "..., and ", path, " has ",
                                     hash.substr(0, 16), "...; name the base that the run froze with --weights")};
  MergedWeights merged{(*model)->layout(), (*frozen)->weights};
  merge_adapters(*plan, adapters, merged.weights);
  return merged;
}

}  // namespace rumor::models
