#include "tools/text/gpt_source.h"

#include <filesystem>

#include "models/families/model.h"
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
    return Error{Errc::usage, str("there is no ", path, " that says how many heads it has; say it with --heads")};
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

// The configuration from the shapes of a file's tensors. Shapes give everything except the heads.
Result<ModelConfig> config_of_shapes(const std::string& path, std::uint32_t heads) {
  const auto files = models::WeightFiles::open(path);
  if (!files) return files.error();
  const auto find = [&](const std::string& name) -> const models::SafetensorsEntry* {
    const models::WeightFiles::Tensor* tensor = files->find(name);
    if (tensor == nullptr) tensor = files->find("transformer." + name);
    return tensor != nullptr ? tensor->entry : nullptr;
  };
  const auto *table = find("wte.weight"), *position = find("wpe.weight");
  const auto is_fine = [](const models::SafetensorsEntry* entry) {
    return entry != nullptr && entry->shape.size() == 2 && entry->shape[0] <= 65'536 && entry->shape[1] <= 65'536;
  };
  if (!is_fine(table) || !is_fine(position))
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

Result<Weights> of_safetensors(const std::string& path, ModelConfig config) {
  auto layout = models::gpt_layout(config);
  if (!layout) return Error{Errc::mismatch, str(path, ": ", layout.error().text)};
  auto params = models::read_named_weights(path, *layout);
  if (!params) return params.error();
  return Weights{std::move(*layout), std::move(*params)};
}

Result<GptSource> assemble(const std::string& path, Weights weights, std::uint32_t heads, std::string directory) {
  auto shape = models::gpt_shape(weights.layout, heads);
  if (!shape) return Error{shape.error().code, str(path, ": ", shape.error().text)};
  return GptSource{std::move(*shape), std::move(weights.params), std::move(directory)};
}

}  // namespace

Result<GptSource> load_gpt(const std::string& path, std::optional<std::uint32_t> heads) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_directory = fs::is_directory(path, ignored);
  const std::string file = models::WeightFiles::file_in(path), parent = fs::path(path).parent_path().string();
  const std::string directory = is_directory ? path : parent.empty() ? "." : parent;
  if (file.empty()) {
    auto weights = of_checkpoint(path);
    if (!weights) return weights.error();
    if (auto shape = models::gpt_shape(weights->layout, 1); !shape)
      return Error{shape.error().code, str(path, ": ", shape.error().text)};
    if (heads) return assemble(path, std::move(*weights), *heads, directory);
    const auto config = config_beside(directory);
    if (!config) return config.error();
    return assemble(path, std::move(*weights), config->heads, directory);
  }
  if (!fs::exists(file, ignored)) return Error{Errc::not_found, str("there is no ", file)};
  const auto config = heads ? config_of_shapes(file, *heads) : config_beside(directory);
  if (!config) return config.error();
  auto weights = of_safetensors(file, *config);
  if (!weights) return weights.error();
  return assemble(file, std::move(*weights), config->heads, directory);
}

}  // namespace rumor::tools
