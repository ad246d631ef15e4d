#include "runtime/daemon/loop/built_in_training.h"

#include <filesystem>
#include <utility>

#include "models/families/adapters.h"
#include "models/tokenizer/tokenizer_json.h"
#include "models/weights/adapter_json.h"
#include "models/weights/model_json.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/training/gpu_trainer.h"
#include "runtime/training/model_trainer.h"

namespace rumor::daemon {

Result<std::string> tokenizer_text(const RunConfig& config) {
  if (config.data.tokens.empty()) return std::string();
  const auto bytes = read_file(config.data.tokens, models::tokenizer_bytes_max);
  if (!bytes) return bytes.error();
  return std::string(bytes->begin(), bytes->end());
}

std::string adapter_text(const RunConfig& config) {
  const models::AdapterConfig& adapter = config.model.adapter;
  if (!adapter.is_on()) return {};
  std::error_code ignored;
  const std::string base = std::filesystem::absolute(config.weights, ignored).lexically_normal().string();
  return models::adapter_json({config.model.family, adapter, base, adapter.base->hash.hex()});
}

Result<Training> built_in_training(const PeerOptions& options, const NodeId& node) {
  const RunConfig& config = options.config;
  auto data = models::load_data(config.data, config.model.context);
  if (!data) return data.error();
  auto start = models::load_start_weights(config.weights, config.model, **data, config.grid_bits);
  if (!start) return start.error();
  models::ModelConfig model = config.model;
  (*data)->describe(model);
  Training training{.trainer = {}, .start = std::move(start).value(), .model_json = models::model_json(model)};
  training.adapter_json = adapter_text(config);
  auto tokenizer = tokenizer_text(config);
  if (!tokenizer) return tokenizer.error();
  training.tokenizer_json = std::move(tokenizer).value();
  const std::uint64_t seed = sampling_seed(config, node);
  if (!options.gpus.empty()) {
    auto made = make_gpu_trainer(options.gpus, config, std::move(data).value(), options.shard, seed);
    if (!made) return Error{Errc::usage, "--device cuda: " + made.error().text};
    training.trainer = std::move(made->trainer);
    training.device = std::move(made->device);
    return training;
  }
  auto trainer = ModelTrainer::create(config, std::move(data).value(), options.shard, seed);
  if (!trainer) return trainer.error();
  training.trainer = std::move(trainer).value();
  return training;
}

}  // namespace rumor::daemon
