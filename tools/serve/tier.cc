#include "tools/serve/tier.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/weights/weight_files.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/stages/stage_place.h"

namespace rumor::tools {

namespace {

Error not_of_stage(const std::string& path, const std::string& what) {
  return {Errc::mismatch, str(path, ": ", what, "; give the model that was trained with this run file, as ",
                              "`rumor export STATE...` joins it, or the state of a peer of this stage")};
}

Result<std::vector<float>> weights_of_files(const std::string& path, const ParamLayout& layout) {
  const auto files = models::WeightFiles::open(path);
  if (!files) return files.error();
  std::vector<float> weights;
  for (const TensorInfo& tensor : layout.tensors()) {
    const auto* const found = files->find(tensor.name);
    if (found == nullptr) return not_of_stage(path, str("tensor ", tensor.name, " is missing"));
    const auto& shape = found->entry->shape;
    if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end()))
      return not_of_stage(path, str("tensor ", tensor.name, " is not ", describe(tensor)));
    const auto floats = found->file->floats(*found->entry);
    if (!floats) return floats.error();
    if (!std::all_of(floats->begin(), floats->end(), [](float one) { return std::isfinite(one); }))
      return not_of_stage(path, str("tensor ", tensor.name, " holds a value that is not finite"));
    weights.insert(weights.end(), floats->begin(), floats->end());
  }
  return weights;
}

Result<std::vector<float>> weights_of_state(const std::string& path, const ParamLayout& layout) {
  std::optional<std::vector<float>> weights;
  const auto loaded = daemon::load_checkpoint(path, [&](BytesView bytes) -> Result<void> {
    const auto form = read_checkpoint_form(bytes);
    if (!form) return form.error();
    if (form->layout.hash() != layout.hash())
      return not_of_stage(path, "its tensors are not those of this stage");
    const auto checkpoint = decode_checkpoint(*form, bytes);
    if (!checkpoint) return checkpoint.error();
    weights = model_of(*form, *checkpoint);
    return {};
  });
  if (loaded) return std::move(*weights);
  if (loaded.error().code != Errc::not_found) return loaded.error();
  return Error{Errc::not_found, str(path, " is no safetensors file, and has no model.safetensors and no checkpoint; ",
                                    "name what `rumor export` wrote, or the --state directory of a peer")};
}

}  // namespace

Result<Tier> Tier::create(const RunConfig& config, const models::DataSet& data, std::uint32_t stage,
                          const std::string& weights) {
  if (config.pipeline.exits.empty())
    return Error{Errc::usage, "the run file has no pipeline.exits, so no tier but the last could answer; train with "
                              "exits, such as pipeline.stages = 3, pipeline.exits = [0.3, 0.3]"};
  const auto place = StagePlace::create(config, data, stage);
  if (!place) return place.error();
  models::ModelConfig part = place->config.model;
  data.describe(part);
  auto model = models::make_model(part);
  if (!model) return model.error();
  const bool is_files = !models::WeightFiles::file_in(weights).empty();
  auto read = is_files ? weights_of_files(weights, (*model)->layout()) : weights_of_state(weights, (*model)->layout());
  if (!read) return read.error();
  Tier tier;
  tier.model_ = std::move(*model);
  tier.weights_ = std::move(*read);
  tier.pipeline_ = place->pipeline.self.pipeline.hex();
  tier.stage_ = stage;
  tier.stages_ = config.pipeline.stages;
  const models::BorderFloats border = tier.model_->border_floats();
  tier.inputs_ = stage == 1 ? part.inputs : border.below;
  tier.features_ = border.above;
  return tier;
}

Tier::Computed Tier::compute(std::span<const float> input, std::uint32_t rows) {
  RUMOR_CHECK(rows >= 1 && input.size() == rows * inputs_);
  const std::vector<std::uint8_t> no_labels(rows);  // which a forward pass does not use
  models::Batch batch{.rows = rows};
  if (stage_ == 1) batch.x = input;
  batch.label = no_labels;
  Computed made;
  made.features.resize(rows * features_);
  made.probability.resize(std::size_t{rows} * classes());
  model_->forward(weights_, batch, stage_ == 1 ? std::span<const float>() : input, made.features);
  model_->predict_exit(made.probability);
  return made;
}

}  // namespace rumor::tools
