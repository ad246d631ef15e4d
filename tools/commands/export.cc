// rumor export: the weights of a state directory as a safetensors file, or as a folder that Hugging Face's
// from_pretrained() reads.
#include <cstdio>
#include <filesystem>
#include <map>

#include "models/families/model.h"
#include "models/weights/model_json.h"
#include "models/weights/safetensors.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/checkpoint.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

struct Exported {
  RunForm form;
  std::uint64_t samples = 0;
  std::vector<float> weights;
};

Result<Exported> read_state(const std::string& state) {
  Exported exported;
  const auto newest = daemon::load_checkpoint(state, [&](BytesView bytes) -> Result<void> {
    auto form = read_checkpoint_form(bytes);
    if (!form) return form.error();
    auto checkpoint = decode_checkpoint(*form, bytes);
    if (!checkpoint) return checkpoint.error();
    exported.samples = checkpoint->replica.samples;
    exported.weights = model_of(*form, *checkpoint);
    exported.form = std::move(form).value();
    return {};
  });
  if (!newest)
    return Error{newest.error().code,
                 str(state, ": ", newest.error().text, "; is it the --state directory of a peer?")};
  if (!newest->note.empty()) std::fprintf(stderr, "warning: %s\n", newest->note.c_str());
  return exported;
}

Result<void> write_weights(const std::string& path, const Exported& exported) {
  std::vector<models::SafetensorsTensor> tensors;
  for (const TensorInfo& tensor : exported.form.layout.tensors())
    tensors.push_back(
        {tensor.name, tensor.shape, std::span(exported.weights).subspan(tensor.offset, tensor.size)});
  // Loaders of PyTorch models require "pt".
  const std::map<std::string, std::string> metadata = {
      {"format", "pt"}, {"run", exported.form.run.hex()}, {"samples", str(exported.samples)}};
  return models::write_safetensors(path, tensors, metadata);
}

Result<void> write_folder(const std::string& state, const std::string& folder, const Exported& exported) {
  const auto description = read_text_file(state + "/config.json");
  if (!description)
    return Error{description.error().code,
                 str("there is no ", state,
                     "/config.json; start the peer once more on this state directory, or "
                     "export to a file that ends in .safetensors")};
  if (auto made = daemon::make_directory(folder); !made) return made;
  if (auto written = write_weights(folder + "/model.safetensors", exported); !written) return written;
  return write_file(folder + "/config.json", *description);
}

}  // namespace

int run_export_command(const ExportCommand& command) {
  const auto exported = read_state(command.state);
  if (!exported) return fail(exported.error());
  const bool is_file = command.to.ends_with(".safetensors");
  const auto written =
      is_file ? write_weights(command.to, *exported) : write_folder(command.state, command.to, *exported);
  if (!written) return fail(written.error());
  std::fprintf(stderr, "%zu parameters after %llu samples, in %s\n", exported->weights.size(),
               static_cast<unsigned long long>(exported->samples), command.to.c_str());
  return 0;
}

}  // namespace rumor::tools
