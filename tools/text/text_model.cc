#include "tools/text/text_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "models/families/gpt_decoder.h"
#include "models/families/lstm_decoder.h"
#include "models/weights/model_json.h"
#include "models/weights/safetensors.h"
#include "models/weights/start_weights.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/checkpoint.h"
#include "tools/words/command.h"

namespace rumor::tools {
namespace {

using models::ModelConfig;

struct Weights {
  ParamLayout layout;
  std::vector<float> params;
};

Result<ModelConfig> config_beside(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const auto text = read_text_file(path);
  if (!text)
    return Error{Errc::usage, str("there is no ", path, " that says how many heads it has; say it with --heads")};
  return models::parse_gpt_json(*text, path);
}

Result<Weights> of_checkpoint(const std::string& directory) {
  std::optional<Weights> weights;
  const auto loaded = daemon::load_checkpoint(directory, [&](BytesView bytes) -> Result<void> {
    auto form = read_checkpoint_form(bytes);
    if (!form) return form.error();
    const auto checkpoint = decode_checkpoint(*form, bytes);
    if (!checkpoint) return checkpoint.error();
    auto params = model_of(*form, *checkpoint);
    weights = Weights{std::move(form->layout), std::move(params)};
    return {};
  });
  if (loaded) return std::move(*weights);
  if (loaded.error().code != Errc::not_found) return loaded.error();
  return Error{Errc::not_found, str("no checkpoint and no model.safetensors in ", directory,
                                    "; name the --state directory of a peer, or a safetensors file")};
}

constexpr const char* lstm_tensor = "lstm.weight_hh_l0";  // a tensor that every LSTM has

bool is_lstm(const ParamLayout& layout) {
  return std::any_of(layout.tensors().begin(), layout.tensors().end(),
                     [](const TensorInfo& tensor) { return tensor.name == lstm_tensor; });
}

bool is_small_matrix(const models::SafetensorsEntry* entry) {
  return entry != nullptr && entry->shape.size() == 2 && entry->shape[0] <= 65'536 && entry->shape[1] <= 65'536;
}

// The configuration from the shapes of a file's tensors. Shapes give everything of an LSTM.
Result<ModelConfig> lstm_config_of(const std::string& path, const models::SafetensorsFile& file) {
  const auto *table = file.find("embedding.weight"), *recurrent = file.find(lstm_tensor);
  if (!is_small_matrix(table) || !is_small_matrix(recurrent))
    return Error{Errc::mismatch, str(path, " is no LSTM: it has no matrices embedding.weight and ", lstm_tensor)};
  ModelConfig config;
  config.family = "lstm";
  config.vocabulary = static_cast<std::uint32_t>(table->shape[0]);
  config.embedding = static_cast<std::uint32_t>(table->shape[1]);
  config.hidden.clear();
  while (file.find(str("lstm.weight_hh_l", config.hidden.size())) != nullptr)
    config.hidden.push_back(static_cast<std::uint32_t>(recurrent->shape[1]));
  return config;
}

// The same of a GPT. Shapes give everything except the heads.
Result<ModelConfig> gpt_config_of(const std::string& path, const models::SafetensorsFile& file, std::uint32_t heads) {
  const auto find = [&](const std::string& name) {
    const models::SafetensorsEntry* entry = file.find(name);
    return entry != nullptr ? entry : file.find("transformer." + name);
  };
  const auto *table = find("wte.weight"), *position = find("wpe.weight");
  if (!is_small_matrix(table) || !is_small_matrix(position))
    return Error{Errc::mismatch, str(path, " is no GPT: it has no tables wte.weight and wpe.weight")};
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = static_cast<std::uint32_t>(table->shape[0]);
  config.embedding = static_cast<std::uint32_t>(table->shape[1]);
  config.context = static_cast<std::uint32_t>(position->shape[0]);
  config.heads = heads;
  for (config.layers = 0; find(str("h.", config.layers, ".ln_1.weight")) != nullptr;) ++config.layers;
  return config;
}

Result<Weights> of_safetensors(const std::string& path, const ModelConfig& config) {
  auto layout = config.family == "lstm" ? models::lstm_layout(config) : models::gpt_layout(config);
  if (!layout) return Error{Errc::mismatch, str(path, ": ", layout.error().text)};
  auto params = models::read_named_weights(path, *layout);
  if (!params) return params.error();
  return Weights{std::move(*layout), std::move(*params)};
}

Error error_in(const std::string& path, const Error& error) { return {error.code, str(path, ": ", error.text)}; }

Result<TextModel> gpt_of(const std::string& path, Weights weights, std::uint32_t heads, std::string directory) {
  auto shape = models::gpt_shape(weights.layout, heads);
  if (!shape) return error_in(path, shape.error());
  TextModel model{std::move(weights.params), nullptr, shape->vocabulary, shape->context, std::move(directory)};
  model.decoder = std::make_unique<models::GptDecoder>(std::move(*shape), model.params);
  return model;
}

Result<TextModel> lstm_of(const std::string& path, Weights weights, std::string directory) {
  auto shape = models::lstm_shape(weights.layout);
  if (!shape) return error_in(path, shape.error());
  TextModel model{std::move(weights.params), nullptr, shape->vocabulary, {}, std::move(directory)};
  model.decoder = std::make_unique<models::LstmDecoder>(std::move(*shape), model.params);
  return model;
}

Error no_heads(const std::string& path) {
  return {Errc::usage, str(path, " is an LSTM, which has no heads; leave out --heads")};
}

Result<TextModel> load_checkpoint_model(const std::string& path, std::optional<std::uint32_t> heads) {
  auto weights = of_checkpoint(path);
  if (!weights) return weights.error();
  if (is_lstm(weights->layout)) {
    if (heads) return no_heads(path);
    return lstm_of(path, std::move(*weights), path);
  }
  if (auto shape = models::gpt_shape(weights->layout, 1); !shape) return error_in(path, shape.error());
  if (heads) return gpt_of(path, std::move(*weights), *heads, path);
  const auto config = config_beside(path);
  if (!config) return config.error();
  return gpt_of(path, std::move(*weights), config->heads, path);
}

Result<ModelConfig> config_of_file(const std::string& file, const std::string& directory,
                                   std::optional<std::uint32_t> heads) {
  const auto tensors = models::SafetensorsFile::read(file);
  if (tensors && tensors->find(lstm_tensor) != nullptr) {
    if (heads) return no_heads(file);
    return lstm_config_of(file, *tensors);
  }
  if (!heads) return config_beside(directory);
  if (!tensors) return tensors.error();
  return gpt_config_of(file, *tensors, *heads);
}

}  // namespace

Result<TextModel> load_text_model(const std::string& path, std::optional<std::uint32_t> heads) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_directory = fs::is_directory(path, ignored);
  const std::string inside = path + "/model.safetensors", parent = fs::path(path).parent_path().string();
  if (is_directory && !fs::exists(inside, ignored)) return load_checkpoint_model(path, heads);
  const std::string file = is_directory ? inside : path;
  if (!fs::exists(file, ignored)) return Error{Errc::not_found, str("there is no ", file)};
  const std::string directory = is_directory ? path : parent.empty() ? "." : parent;
  const auto config = config_of_file(file, directory, heads);
  if (!config) return config.error();
  auto weights = of_safetensors(file, *config);
  if (!weights) return weights.error();
  if (config->family == "lstm") return lstm_of(file, std::move(*weights), directory);
  return gpt_of(file, std::move(*weights), config->heads, directory);
}

}  // namespace rumor::tools
