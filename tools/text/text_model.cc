#include "tools/text/text_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "models/decoders/gpt_decoder.h"
#include "models/decoders/llama_decoder.h"
#include "models/decoders/lstm_decoder.h"
#include "models/weights/merged_weights.h"
#include "models/weights/model_json.h"
#include "models/weights/start_weights.h"
#include "models/weights/weight_files.h"
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
    return Error{Errc::usage, str("there is no ", path, " that says which model this is; for a GPT, say how many heads "
                                  "it has with --heads")};
  return models::parse_model_json(*text, path);
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
  return entry != nullptr && entry->shape.size() == 2 && entry->shape[0] <= models::vocabulary_max &&
         entry->shape[1] <= 65'536;
}

const models::SafetensorsEntry* entry_of(const models::WeightFiles& files, const std::string& name) {
  const models::WeightFiles::Tensor* tensor = files.find(name);
  return tensor != nullptr ? tensor->entry : nullptr;
}

// The configuration from the shapes of a file's tensors. Shapes give everything of an LSTM.
Result<ModelConfig> lstm_config_of(const std::string& path, const models::WeightFiles& files) {
  const auto *table = entry_of(files, "embedding.weight"), *recurrent = entry_of(files, lstm_tensor);
  if (!is_small_matrix(table) || !is_small_matrix(recurrent))
    return Error{Errc::mismatch, str(path, " is no LSTM: it has no matrices embedding.weight and ", lstm_tensor)};
  ModelConfig config;
  config.family = "lstm";
  config.vocabulary = static_cast<std::uint32_t>(table->shape[0]);
  config.embedding = static_cast<std::uint32_t>(table->shape[1]);
  config.hidden.clear();
  while (files.find(str("lstm.weight_hh_l", config.hidden.size())) != nullptr)
    config.hidden.push_back(static_cast<std::uint32_t>(recurrent->shape[1]));
  return config;
}

// The same of a GPT. Shapes give everything except the heads.
Result<ModelConfig> gpt_config_of(const std::string& path, const models::WeightFiles& files, std::uint32_t heads) {
  const auto find = [&](const std::string& name) {
    const models::SafetensorsEntry* entry = entry_of(files, name);
    return entry != nullptr ? entry : entry_of(files, "transformer." + name);
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
  config.tied_head = find("lm_head.weight") == nullptr;
  for (config.layers = 0; find(str("h.", config.layers, ".ln_1.weight")) != nullptr;) ++config.layers;
  return config;
}

Result<ParamLayout> layout_of(const ModelConfig& config) {
  if (config.family == "lstm") return models::lstm_layout(config);
  return config.family == "llama" ? models::llama_layout(config) : models::gpt_layout(config);
}

Error error_in(const std::string& path, const Error& error) { return {error.code, str(path, ": ", error.text)}; }

// The model that `config` and the weights are of. A Llama's memory is for 4,096 tokens at most.
Result<TextModel> model_with(const std::string& path, ModelConfig config, Weights weights, std::string directory) {
  TextModel model{std::move(weights.params), nullptr, config.vocabulary, {}, std::move(directory)};
  if (config.family == "llama") {
    config.context = std::min(config.context, 4096u);
    if (models::llama_layout(config).value().hash() != weights.layout.hash())
      return Error{Errc::mismatch, str(path, ": the tensors are not those that config.json beside them describes")};
    model.context = config.context;
    model.decoder = std::make_unique<models::LlamaDecoder>(models::llama_shape(config), model.params);
  } else if (config.family == "lstm") {
    auto shape = models::lstm_shape(weights.layout);
    if (!shape) return error_in(path, shape.error());
    model.vocabulary = shape->vocabulary;
    model.decoder = std::make_unique<models::LstmDecoder>(std::move(*shape), model.params);
  } else {
    auto shape = models::gpt_shape(weights.layout, config.heads);
    if (!shape) return error_in(path, shape.error());
    model.vocabulary = shape->vocabulary;
    model.context = shape->context;
    model.decoder = std::make_unique<models::GptDecoder>(std::move(*shape), model.params);
  }
  return model;
}

Error no_heads(const std::string& path) {
  return {Errc::usage, str(path, " is an LSTM, which has no heads; leave out --heads")};
}

// The whole model of a state directory with adapters.
Result<TextModel> merged_model(const std::string& path, const models::AdapterDescription& description,
                               const Weights& adapters, const std::string& base) {
  const auto config = config_beside(path);
  if (!config) return config.error();
  auto merged = models::merge_into_base(description, *config, adapters.layout, adapters.params, base);
  if (!merged) return error_in(path, merged.error());
  return model_with(path, *config, Weights{std::move(merged->layout), std::move(merged->weights)}, path);
}

Result<TextModel> load_checkpoint_model(const std::string& path, std::optional<std::uint32_t> heads,
                                        const std::string& base) {
  if (std::filesystem::exists(path + "/stage.json"))
    return Error{Errc::usage, str(path, " is of a peer that serves one stage of a model; join the stages first: ",
                                  "rumor export DIRECTORY... --to FOLDER")};
  auto weights = of_checkpoint(path);
  if (!weights) return weights.error();
  const auto description = models::adapters_beside(path);
  if (!description) return description.error();
  if (*description) return merged_model(path, **description, *weights, base);
  ModelConfig config;
  config.family = "gpt";
  if (is_lstm(weights->layout)) {
    if (heads) return no_heads(path);
    config.family = "lstm";
  } else if (heads) {
    config.heads = *heads;
  } else {
    const auto beside = config_beside(path);
    if (!beside) return beside.error();
    config = *beside;
  }
  return model_with(path, config, std::move(*weights), path);
}

Result<ModelConfig> config_of_file(const std::string& file, const std::string& directory,
                                   std::optional<std::uint32_t> heads) {
  const auto files = models::WeightFiles::open(file);
  if (files && files->find(lstm_tensor) != nullptr) {
    if (heads) return no_heads(file);
    return lstm_config_of(file, *files);
  }
  if (!heads) return config_beside(directory);
  if (!files) return files.error();
  return gpt_config_of(file, *files, *heads);
}

}  // namespace

bool writes_text(const ModelConfig& config) {
  return config.family == "gpt" || config.family == "lstm" || config.family == "llama";
}

Result<TextModel> text_model_of(const std::string& name, const ModelConfig& config, const ParamLayout& layout,
                                std::vector<float> params) {
  if (config.adapter.is_on()) {
    ModelConfig whole = config;
    whole.adapter = {};
    const auto model = models::make_model(whole);
    if (!model) return model.error();
    const auto plan = models::plan_adapters(config, **model);
    if (!plan) return plan.error();
    std::vector<float> merged = config.adapter.base->weights;
    models::merge_adapters(*plan, params, merged);
    return model_with(name, whole, Weights{(*model)->layout(), std::move(merged)}, "");
  }
  return model_with(name, config, Weights{layout, std::move(params)}, "");
}

Result<TextModel> load_text_model(const std::string& path, std::optional<std::uint32_t> heads,
                                  const std::string& base) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string file = models::WeightFiles::file_in(path), parent = fs::path(path).parent_path().string();
  if (file.empty()) return load_checkpoint_model(path, heads, base);
  if (!fs::exists(file, ignored)) return Error{Errc::not_found, str("there is no ", file)};
  const std::string directory = fs::is_directory(path, ignored) ? path : parent.empty() ? "." : parent;
  const auto config = config_of_file(file, directory, heads);
  if (!config) return config.error();
  auto layout = layout_of(*config);
  if (!layout) return Error{Errc::mismatch, str(file, ": ", layout.error().text)};
  auto params = models::read_named_weights(path, *layout);
  if (!params) return params.error();
  return model_with(file, *config, Weights{std::move(*layout), std::move(*params)}, directory);
}

}  // namespace rumor::tools
