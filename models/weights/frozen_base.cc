#include "models/weights/frozen_base.h"

#include <utility>

#include "models/weights/start_weights.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::shared_ptr<const FrozenBase>> read_base(const std::string& path, const ParamLayout& layout) {
  auto weights = read_named_weights(path, layout);
  if (!weights) return weights.error();
  auto base = std::make_shared<FrozenBase>();
  base->weights = std::move(weights).value();
  base->hash = sha256(
      {reinterpret_cast<const std::uint8_t*>(base->weights.data()), base->weights.size() * sizeof(float)});
  return std::shared_ptr<const FrozenBase>(std::move(base));
}

Result<void> open_base_of(const std::string& path, const DataConfig& data, ModelConfig& config) {
  if (!config.adapter.is_on()) return {};
  if (path.empty())
    return Error{Errc::usage, str("model.adapter = \"", config.adapter.kind, "\" trains adapters of weights that stay ",
                                  "frozen, and each peer needs these: name their folder with --weights FOLDER ",
                                  "(model.weights)")};
  const auto facts = describe_data(data);
  if (!facts) return facts.error();
  ModelConfig whole = config;
  whole.adapter = {};
  facts->describe(whole);
  const auto model = make_model(whole);
  if (!model) return model.error();
  if (const auto plan = plan_adapters(config, **model); !plan) return plan.error();
  auto base = read_base(path, (*model)->layout());
  if (!base) return base.error();
  config.adapter.base = std::move(base).value();
  return {};
}

}  // namespace rumor::models
