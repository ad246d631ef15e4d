#include "tools/gpt_source.h"

#include <filesystem>

#include "models/gpt_config.h"
#include "models/safetensors.h"
#include "runtime/base/text.h"
#include "runtime/checkpoint.h"
#include "runtime/daemon/storage.h"
#include "runtime/trainer.h"
#include "tools/command.h"

namespace rumor::tools {
namespace {

struct Weights {
  ParamLayout layout;
  std::vector<float> params;
};

Result<Weights> of_checkpoint(const std::string& directory) {
  const auto valid = [](BytesView bytes) -> Result<void> {
    const auto form = read_checkpoint_form(bytes);
    return form ? Result<void>() : Result<void>(form.error());
  };
  const auto loaded = daemon::load_checkpoint(directory, valid);
  if (!loaded) {
    if (loaded.error().code != Errc::not_found) return loaded.error();
    return Error{Errc::not_found, str("no checkpoint and no model.safetensors in ", directory,
                                      "; name the --state directory of a peer, or a safetensors file")};
  }
  const auto form = read_checkpoint_form(loaded->bytes);
  if (!form) return form.error();
  const auto checkpoint = decode_checkpoint(*form, loaded->bytes);
  if (!checkpoint) return checkpoint.error();
  return Weights{form->layout, Trainer::to_floats(checkpoint->replica.weights, form->grid_bits)};
}

// All tensors of floats with one or two dimensions, but for the head, which is the table of tokens once more.
Result<Weights> of_safetensors(const std::string& path) {
  const auto file = models::SafetensorsFile::read(path);
  if (!file) return file.error();
  std::vector<TensorInfo> tensors;
  std::vector<float> params;
  for (const models::SafetensorsEntry& entry : file->entries()) {
    if (entry.shape.empty() || entry.shape.size() > 2 || entry.name == "lm_head.weight") continue;
    if (entry.dtype != "F32")
      return Error{Errc::mismatch,
                   str(path, ": tensor ", entry.name, " is ", entry.dtype, "; only F32 can be read")};
    TensorInfo tensor{entry.name, {}};
    for (const std::uint64_t extent : entry.shape) {
      if (extent == 0 || extent > limits::params_max)
        return Error{Errc::mismatch, str(path, ": tensor ", entry.name, " has ", extent, " rows or columns")};
      tensor.shape.push_back(static_cast<std::uint32_t>(extent));
    }
    const auto values = file->floats(entry);
    if (!values) return values.error();
    params.insert(params.end(), values->begin(), values->end());
    tensors.push_back(std::move(tensor));
  }
  if (tensors.empty()) return Error{Errc::mismatch, str(path, " is no GPT: it has no tensors of floats")};
  auto layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  return Weights{std::move(*layout), std::move(params)};
}

Result<std::uint32_t> heads_beside(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const auto text = read_text_file(path);
  if (text) return models::heads_of_config(*text, path);
  return Error{Errc::usage, str("how many heads it has stands in no ", path, "; say it with --heads")};
}

}  // namespace

Result<GptSource> load_gpt(const std::string& path, std::optional<std::uint32_t> heads) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  const std::string inside = path + "/model.safetensors";
  const bool has_file = is_directory && std::filesystem::exists(inside, ignored);
  auto weights = !is_directory ? of_safetensors(path)
                 : has_file    ? of_safetensors(inside)
                               : of_checkpoint(path);
  if (!weights) return weights.error();
  GptSource source;
  source.directory = is_directory ? path : std::filesystem::path(path).parent_path().string();
  if (source.directory.empty()) source.directory = ".";
  // Whether it is a GPT at all comes before what is missing of it.
  if (auto shape = models::gpt_shape(weights->layout, 1); !shape)
    return Error{shape.error().code, str(path, ": ", shape.error().text)};
  const auto known = heads ? Result<std::uint32_t>(*heads) : heads_beside(source.directory);
  if (!known) return known.error();
  auto shape = models::gpt_shape(weights->layout, *known);
  if (!shape) return Error{shape.error().code, str(path, ": ", shape.error().text)};
  source.shape = std::move(*shape);
  source.params = std::move(weights->params);
  return source;
}

}  // namespace rumor::tools
