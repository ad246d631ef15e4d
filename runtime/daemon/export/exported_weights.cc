#include "runtime/daemon/export/exported_weights.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/daemon/status/figure_text.h"

namespace rumor::daemon {

namespace {

// One line: the list that /status has. A file has no now, so it says when and not how long ago.
std::string contributions_json(ContributionTable table) {
  for (Contribution& one : table.nodes) one.now = 0;
  FigureSheet sheet;
  add_contributions(sheet, table);
  return nlohmann::ordered_json::parse(figures_json(sheet)).at("contributions").dump();
}

Result<void> write_text(const std::string& path, const std::string& text) {
  return write_atomically(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace

ExportedWeights exported_replica(const RunForm& form, const ReplicaState& replica) {
  ExportedWeights exported{.form = form, .samples = replica.samples, .digest = digest_of(replica)};
  const float unit = std::ldexp(1.0f, -form.grid_bits);
  exported.weights.reserve(replica.weights.size());
  for (const std::int32_t weight : replica.weights) exported.weights.push_back(static_cast<float>(weight) * unit);
  return exported;
}

std::vector<models::SafetensorsTensor> tensors_of(const ExportedWeights& exported, const std::string& dtype) {
  std::string type = dtype;
  for (char& letter : type) letter = letter >= 'a' ? static_cast<char>(letter - 'a' + 'A') : letter;
  std::vector<models::SafetensorsTensor> tensors;
  for (const TensorInfo& tensor : exported.form.layout.tensors())
    tensors.push_back(
        {tensor.name, tensor.shape, std::span(exported.weights).subspan(tensor.offset, tensor.size), type});
  for (const ExportedBuffer& buffer : exported.buffers)
    tensors.push_back({buffer.name, buffer.shape, {}, buffer.dtype, buffer.bytes});
  return tensors;
}

models::SafetensorsMetadata metadata_of(const ExportedWeights& exported) {
  // Loaders of PyTorch models require "pt".
  models::SafetensorsMetadata metadata = {
      {"format", "pt"}, {"run", exported.form.run.hex()}, {"samples", str(exported.samples)}};
  if (exported.averaged > 0) metadata["averaged_samples"] = str(exported.averaged);
  if (exported.digest) {
    metadata["digest"] = digest_text(*exported.digest);
    metadata["updates"] = str(exported.digest->updates);
  }
  if (!exported.contributions.nodes.empty()) metadata["contributions"] = contributions_json(exported.contributions);
  if (exported.loss) metadata["loss"] = fixed(*exported.loss, 6);
  if (exported.unix_seconds > 0) metadata["exported_unix_s"] = str(exported.unix_seconds);
  return metadata;
}

models::SafetensorsMetadata metadata_of(const ExportedWeights& exported, const models::AdapterDescription& adapters) {
  models::SafetensorsMetadata metadata = metadata_of(exported);
  metadata["base_sha256"] = adapters.base_hash;
  return metadata;
}

Result<void> describe_adapters(const std::string& folder, models::AdapterDescription adapters) {
  adapters.base_hash.clear();
  return write_text(folder + "/adapter_config.json", models::adapter_json(adapters));
}

Result<void> describe_export(const std::string& folder, const RunId& run, const std::string& description,
                             const std::string& tokenizer, const std::string& dtype) {
  if (!tokenizer.empty())
    if (auto written = write_text(folder + "/tokenizer.json", tokenizer); !written) return written;
  auto json = nlohmann::ordered_json::parse(description, nullptr, false);
  if (!json.is_object()) return write_text(folder + "/config.json", description);
  if (dtype != "f32")
    for (const char* member : {"torch_dtype", "dtype"})
      if (json.contains(member)) json[member] = dtype == "bf16" ? "bfloat16" : "float16";
  json["rumor"] = {{"run", run.hex()}};
  return write_text(folder + "/config.json", json.dump(2) + "\n");
}

}  // namespace rumor::daemon
