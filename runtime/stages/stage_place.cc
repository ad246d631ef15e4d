#include "runtime/stages/stage_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/families/model.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/run/run_identity.h"

namespace rumor {

namespace {

// The id of the run that is not cut: its tensors are those of the parts, one after another. One part is in memory at a
// time.
Result<RunId> run_of_whole(const RunConfig& config, const models::DataSet& data,
                           const std::vector<models::UnitRange>& parts) {
  std::vector<TensorInfo> tensors;
  for (std::uint32_t stage = 1; stage <= parts.size(); ++stage) {
    RunConfig one = config;
    take_stage(one, parts, stage);
    data.describe(one.model);
    const auto model = models::make_model(one.model);
    if (!model) return model.error();
    const auto& more = (*model)->layout().tensors();
    tensors.insert(tensors.end(), more.begin(), more.end());
  }
  const auto layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  return run_id(config, *layout);
}

}  // namespace

compress::BorderNumbers border_numbers(const PipelineRules& rules) {
  if (rules.border == "f32") return compress::BorderNumbers::f32;
  return rules.border == "bf16" ? compress::BorderNumbers::bf16 : compress::BorderNumbers::int8;
}

void take_stage(RunConfig& config, const std::vector<models::UnitRange>& parts, std::uint32_t stage) {
  RUMOR_CHECK(stage >= 1 && stage <= parts.size());
  config.model.units = parts[stage - 1];
  config.model.exit = {};
  const std::vector<double>& exits = config.pipeline.exits;
  if (stage <= exits.size()) config.model.exit = {stage, exits[stage - 1]};
}

Result<void> check_stages(const RunConfig& config) {
  const auto refused = [&](const std::string& why) {
    return Error{Errc::usage, str("pipeline.stages = ", config.pipeline.stages, ": ", why)};
  };
  if (config.mode != "broadcast")
    return refused(str("exchange.mode = \"", config.mode, "\" is not possible with stages; set \"broadcast\""));
  if (config.hogwild > 0 || config.takes_local_steps())
    return refused("a step of a stage is its micro-batches; set optimizer.hogwild = 0, exchange.local_steps = 1");
  if (config.records) return refused("steps of a stage cannot be made again; set audit.record = false");
  return {};
}

Result<StagePlace> StagePlace::create(const RunConfig& config, const models::DataSet& data, std::uint32_t stage) {
  RUMOR_CHECK(stage >= 1 && stage <= config.pipeline.stages);
  if (auto fits = check_stages(config); !fits) return fits.error();
  if (!config.weights.empty())
    return Error{Errc::usage, "model.weights is not possible with stages so far; leave it out"};
  models::ModelConfig described = config.model;
  data.describe(described);
  const auto parts = models::cut_model(described, config.pipeline.stages, config.pipeline.cut);
  if (!parts) return parts.error();
  const auto whole = run_of_whole(config, data, *parts);
  if (!whole) return whole.error();
  StagePlace place{.config = config, .pipeline = {}};
  take_stage(place.config, *parts, stage);
  place.pipeline.self.pipeline = gossip::PipelineId::from(whole->view());
  place.pipeline.self.stage = stage;
  place.pipeline.self.stages = config.pipeline.stages;
  place.pipeline.self.numbers = static_cast<std::uint32_t>(border_numbers(config.pipeline));
  place.pipeline.micro_batches = config.pipeline.micro_batches;
  place.pipeline.window = std::max<std::uint64_t>(4, 2 * (config.pipeline.stages - stage + 1));
  place.pipeline.overlap = config.pipeline.overlap;
  return place;
}

}  // namespace rumor
