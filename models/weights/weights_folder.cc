#include "models/weights/weights_folder.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "models/data/mapped_file.h"
#include "models/weights/model_json.h"

namespace rumor::models {

Result<WeightsFolder> read_weights_folder(const std::string& path) {
  WeightsFolder folder;
  std::error_code ignored;
  const std::string config = path + "/config.json", tokenizer = path + "/tokenizer.json";
  if (std::filesystem::is_regular_file(tokenizer, ignored)) folder.tokenizer = tokenizer;
  if (!std::filesystem::is_regular_file(config, ignored)) {
    folder.has_adapters_alone = std::filesystem::is_regular_file(path + "/adapter_config.json", ignored);
    return folder;
  }
  const auto file = MappedFile::open(config);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_own_model_json(text)) return folder;
  auto model = parse_model_json(text, config);
  if (!model) return model.error();
  folder.model = std::move(*model);
  return folder;
}

}  // namespace rumor::models
