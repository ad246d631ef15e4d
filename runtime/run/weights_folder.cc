#include "runtime/run/weights_folder.h"

#include <filesystem>
#include <utility>

#include "models/data/mapped_file.h"
#include "models/weights/model_json.h"
#include "runtime/base/text.h"

namespace rumor {

Result<void> adopt_weights_folder(RunConfig& config) {
  const std::string path = config.weights + "/config.json";
  std::error_code ignored;
  if (config.weights.empty() || !std::filesystem::is_regular_file(path, ignored)) return {};
  const auto file = models::MappedFile::open(path);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (models::is_own_model_json(text)) return {};
  auto model = models::parse_model_json(text, path);
  if (!model) return model.error();
  if (model->family == "llama") {
    if (config.model.context > model->positions)
      return Error{Errc::usage, str("model.context = ", config.model.context, ", but the weights in ", config.weights,
                                    " were made for ", model->positions, " tokens (max_position_embeddings)")};
    model->context = config.model.context;
  }
  config.model = std::move(*model);
  const std::string tokenizer = config.weights + "/tokenizer.json";
  if (config.data.kind == "text" && config.data.tokens.empty() && std::filesystem::is_regular_file(tokenizer, ignored))
    config.data.tokens = tokenizer;
  return {};
}

}  // namespace rumor
