#include "runtime/daemon/loop/stage_training.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/weights/model_json.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/stages/stage_costs.h"
#include "runtime/stages/stage_place.h"
#include "runtime/stages/stage_trainer.h"

namespace rumor::daemon {

namespace {

Result<void> check_stage_options(const PeerOptions& options) {
  const std::uint32_t stages = options.config.pipeline.stages;
  if (*options.stage < 1 || *options.stage > stages)
    return Error{Errc::usage, str("--stage ", *options.stage, ": the run file has pipeline.stages = ", stages,
                                  stages == 1 ? ", so its model is not cut; set pipeline.stages, or leave --stage out"
                                              : "; give a stage from 1 to that number")};
  if (stages == 1) return Error{Errc::usage, "--stage 1: pipeline.stages is 1, so the model is not cut; leave it out"};
  if (!options.gpus.empty())
    return Error{Errc::usage, "--device cuda: a stage is computed on a processor so far; leave --device out"};
  if (options.following) return Error{Errc::usage, "a stage of a pipeline cannot be followed so far"};
  return {};
}

// All peers of a pipeline take the rows to be as describe_data() says, since all but the first stage have none.
Result<std::shared_ptr<const models::DataSet>> rows_for_stage(const PeerOptions& options) {
  const RunConfig& config = options.config;
  auto described = models::describe_data(config.data);
  if (!described) return described.error();
  auto without_rows = std::make_shared<const models::DataSet>(std::move(described).value());
  if (options.pipeline->self.stage > 1) return std::shared_ptr<const models::DataSet>(std::move(without_rows));
  auto data = models::load_data(config.data, config.model.context);
  if (!data) return data.error();
  models::ModelConfig expected = config.model, found = config.model;
  without_rows->describe(expected);
  (*data)->describe(found);
  if (expected.inputs != found.inputs || expected.classes != found.classes || expected.vocabulary != found.vocabulary)
    return Error{Errc::usage, str("the data have ", found.inputs, " inputs and ", found.classes,
                                  " classes; the other stages, which do not read them, take them to have ",
                                  expected.inputs, " and ", expected.classes)};
  return data;
}

// A neighbour closes the link over a transfer that is larger than any may be.
Result<void> check_border(const RunConfig& config, const models::Model& model) {
  const std::uint64_t rows = micro_batch_rows(config);
  const models::BorderFloats border = model.border_floats();
  const std::uint64_t bytes = rows * std::max(border.below, border.above) * sizeof(float);
  if (bytes <= limits::border_bytes_max / 2) return {};
  return Error{Errc::usage, str("a micro-batch of ", rows, " rows has ", bytes, " bytes between two stages, and ",
                                limits::border_bytes_max / 2, " are the limit; raise pipeline.micro_batches")};
}

std::string stage_json(const gossip::Stage& stage) {
  const nlohmann::ordered_json json = {
      {"pipeline", stage.pipeline.hex()}, {"stage", stage.stage}, {"stages", stage.stages}};
  return json.dump() + "\n";
}

}  // namespace

Result<PeerOptions> serve_stage(const PeerOptions& options) {
  if (auto fits = check_stage_options(options); !fits) return fits.error();
  const auto data = models::describe_data(options.config.data);
  if (!data) return data.error();
  auto place = StagePlace::create(options.config, *data, *options.stage);
  if (!place) return place.error();
  PeerOptions staged = options;
  staged.config = std::move(place->config);
  staged.pipeline = std::move(place->pipeline);
  return staged;
}

Result<Training> stage_training(const PeerOptions& options, const NodeId& node) {
  const RunConfig& config = options.config;
  auto data = rows_for_stage(options);
  if (!data) return data.error();
  models::ModelConfig whole = config.model;
  (*data)->describe(whole);
  whole.units = {};
  whole.exit = {};
  Training training{.trainer = {}, .start = {}, .model_json = models::model_json(whole)};
  auto tokenizer = tokenizer_text(config);
  if (!tokenizer) return tokenizer.error();
  training.tokenizer_json = std::move(tokenizer).value();
  const std::uint64_t seed = sampling_seed(config, node);
  auto made = StageTrainer::create(config, std::move(data).value(), options.shard, seed);
  if (!made) return made.error();
  if (auto fits = check_border(config, made->worker->model()); !fits) return fits.error();
  training.stage = StageDuty{made->worker, made->complete, stage_json(options.pipeline->self)};
  training.trainer = std::move(made->trainer);
  return training;
}

}  // namespace rumor::daemon
