#include "runtime/stages/stage_costs.h"

#include "models/families/model.h"
#include "runtime/stages/stage_place.h"

namespace rumor {

std::uint32_t micro_batch_rows(const RunConfig& config) { return config.batch / config.pipeline.micro_batches; }

Result<std::vector<StageCosts>> stage_costs(const RunConfig& config, const models::DataSet& data) {
  const compress::BorderNumbers numbers = border_numbers(config.pipeline);
  const std::size_t rows = micro_batch_rows(config);
  if (auto fits = check_stages(config); !fits) return fits.error();
  models::ModelConfig whole = config.model;
  data.describe(whole);
  const auto parts = models::cut_model(whole, config.pipeline.stages, config.pipeline.cut);
  if (!parts) return parts.error();
  std::vector<StageCosts> all;
  for (std::uint32_t stage = 1; stage <= config.pipeline.stages; ++stage) {
    RunConfig one = config;
    take_stage(one, *parts, stage);
    models::ModelConfig described = one.model;
    data.describe(described);
    const auto model = models::make_model(described);
    if (!model) return model.error();
    const models::BorderFloats border = (*model)->border_floats();
    const std::size_t labels = described.vocabulary == 0 ? 1 : (described.context + 1) * sizeof(models::Token);
    StageCosts& costs = all.emplace_back();
    costs.params = (*model)->layout().params();
    costs.multiply_adds = (*model)->multiply_adds(1);
    if (stage < config.pipeline.stages)
      costs.up_bytes = rows * labels + compress::border_bytes(numbers, rows, border.above);
    if (stage > 1) costs.down_bytes = compress::border_bytes(numbers, rows, border.below);
  }
  return all;
}

}  // namespace rumor
