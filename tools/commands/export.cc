// rumor export: the weights of a state directory, or of one of each stage of a pipeline, as a safetensors file, or as a
// folder that Hugging Face's from_pretrained() reads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "models/families/model.h"
#include "models/weights/merged_weights.h"
#include "models/weights/model_json.h"
#include "models/weights/safetensors_writer.h"
#include "models/weights/weight_shards.h"
#include "runtime/base/text.h"
#include "runtime/daemon/export/exported_weights.h"
#include "runtime/daemon/state/file_disk.h"
#include "runtime/daemon/state/peer_files.h"
#include "runtime/daemon/state/storage.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/replica/tail_average.h"
#include "tools/commands/joined_stages.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

using daemon::ExportedBuffer;
using daemon::ExportedWeights;

constexpr std::uint64_t default_shard_bytes = 5'000'000'000;

struct State {
  RunForm form = {};
  Checkpoint checkpoint = {};
};

Result<State> read_state(const std::string& folder) {
  State state;
  const auto newest = daemon::load_checkpoint(folder, [&](BytesView bytes) -> Result<void> {
    auto form = read_checkpoint_form(bytes);
    if (!form) return form.error();
    auto checkpoint = decode_checkpoint(*form, bytes);
    if (!checkpoint) return checkpoint.error();
    state = {std::move(form).value(), std::move(checkpoint).value()};
    return {};
  });
  if (!newest)
    return Error{newest.error().code,
                 str(folder, ": ", newest.error().text, "; is it the --state directory of a peer?")};
  if (!newest->note.empty()) std::fprintf(stderr, "warning: %s\n", newest->note.c_str());
  return state;
}

// The mean of the weights over the last `share` of the samples.
Result<TailAverage> average_of(const std::string& folder, double share, const State& state) {
  if (state.checkpoint.local.own_model)
    return Error{Errc::usage, "--average is for runs whose peers share one model; here each peer has its own"};
  daemon::FileDisk disk = daemon::FileDisk::read_only(folder + "/kept");
  UpdateLog log(SIZE_MAX, 0);
  if (const auto opened = log.open(disk, state.form.run); !opened) return opened.error();
  const double samples = share * static_cast<double>(state.checkpoint.replica.samples);
  const auto wanted = static_cast<std::uint64_t>(std::max(1.0, std::round(samples)));
  auto average = tail_average(state.form, state.checkpoint.replica, log, wanted);
  if (!average) return average.error();
  if (average->samples == 0)
    return Error{Errc::not_found, str("--average: there is no log of updates in ", folder, "/kept")};
  if (average->samples < wanted)
    std::fprintf(stderr, "warning: the log goes back %llu samples, not %llu; the mean is over these\n",
                 static_cast<unsigned long long>(average->samples), static_cast<unsigned long long>(wanted));
  return average;
}

constexpr std::uint64_t buffer_bytes_max = std::uint64_t{1} << 31;  // times an extent, it does not overflow

// The size of a type of safetensors files: its bits are its name's digits. 0: not known.
std::size_t dtype_bytes(const std::string& dtype) {
  if (dtype == "BOOL") return 1;
  const std::size_t digits = dtype.find_first_of("0123456789");
  return digits == std::string::npos ? 0 : static_cast<std::size_t>(std::atoi(dtype.c_str() + digits)) / 8;
}

// The buffers of a state whose program has described them. Where the description does not fit the checkpoint, the file
// goes without them, with a warning.
std::vector<ExportedBuffer> buffers_of(const std::string& folder, const ParamLayout& layout, BytesView bytes) {
  const auto text = read_text_file(folder + "/buffers.json");
  if (!text) return {};
  std::vector<ExportedBuffer> buffers;
  std::set<std::string> names;
  for (const TensorInfo& tensor : layout.tensors()) names.insert(tensor.name);
  std::size_t at = 0;
  try {
    for (const auto& one : nlohmann::json::parse(*text)) {
      ExportedBuffer buffer{one.at("name"), one.at("dtype"), one.at("shape"), {}};
      std::uint64_t size = dtype_bytes(buffer.dtype);
      for (const std::uint32_t extent : buffer.shape)
        size = extent > bytes.size() ? 0 : std::min(size * extent, buffer_bytes_max);
      if (size == 0 || size > bytes.size() - at) throw std::length_error("of another size than the checkpoint");
      if (!names.insert(buffer.name).second) throw std::invalid_argument("two tensors are named " + buffer.name);
      buffer.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
      at += size;
      buffers.push_back(std::move(buffer));
    }
    if (at != bytes.size()) throw std::length_error("of another size than the checkpoint");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: %s/buffers.json does not fit the checkpoint (%s); the file goes without buffers\n",
                 folder.c_str(), error.what());
    return {};
  }
  return buffers;
}

// The table that was saved with the checkpoint, in line with its updates.
void add_contributions_of(const std::string& folder, const State& state, ExportedWeights& exported) {
  const auto bytes = daemon::PeerFiles::contributions_of(folder);
  auto table = bytes ? Contributions::decode(state.form.run, *bytes) : Result<Contributions>(Contributions());
  if (!table) {
    std::fprintf(stderr, "warning: %s/contributions: %s; the file goes without them\n", folder.c_str(),
                 table.error().text.c_str());
    return;
  }
  const ReplicaState& replica = state.checkpoint.replica;
  (*table).reconcile(replica.have, [&](const UpdateKey& key) {
    return std::any_of(replica.revocations.begin(), replica.revocations.end(),
                       [&](const gossip::Revocation& one) { return one.covers(key); });
  });
  const NodeId own[] = {state.checkpoint.local.node};
  exported.contributions = (*table).table(replica.have, replica.samples, own);
}

Result<ExportedWeights> export_of(const std::string& folder, double share) {
  auto state = read_state(folder);
  if (!state) return state.error();
  const ReplicaState& replica = state->checkpoint.replica;
  ExportedWeights exported{.form = state->form, .samples = replica.samples};
  exported.buffers = buffers_of(folder, state->form.layout, state->checkpoint.local.optimizer);
  if (!state->checkpoint.local.own_model) add_contributions_of(folder, *state, exported);
  if (share == 0) {
    exported.weights = model_of(state->form, state->checkpoint);
    if (!state->checkpoint.local.own_model) exported.digest = digest_of(replica);
    return exported;
  }
  auto average = average_of(folder, share, *state);
  if (!average) return average.error();
  exported.weights = std::move(average->weights);
  exported.averaged = average->samples;
  return exported;
}

Result<ExportedWeights> what_to_export(const ExportCommand& command) {
  const std::vector<std::string>& states = command.states;
  if (states.size() == 1 && !serves_stage(states[0])) return export_of(states[0], command.average);
  std::vector<ExportedWeights> parts;
  for (const std::string& folder : states) {
    auto part = export_of(folder, command.average);
    if (!part) return part.error();
    parts.push_back(std::move(part).value());
  }
  return join_stages(states, std::move(parts));
}

// The description of the model that a folder needs.
Result<std::string> description_of(const std::string& state) {
  auto description = read_text_file(state + "/config.json");
  if (description) return description;
  return Error{description.error().code,
               str("there is no ", state, "/config.json: only the program that trained this model knows it; export ",
                   "to a file that ends in .safetensors (or start `rumor peer` once more on this directory)")};
}

// The two files of PEFT, or its weights alone.
Result<void> write_adapters(const ExportCommand& command, const ExportedWeights& exported,
                            const models::AdapterDescription& description) {
  const models::SafetensorsMetadata metadata = daemon::metadata_of(exported, description);
  const auto tensors = daemon::tensors_of(exported, command.dtype);
  if (command.to.ends_with(".safetensors")) return models::write_safetensors(command.to, tensors, metadata);
  models::AdapterDescription told = description;
  if (!command.base.empty()) told.base = command.base;
  if (auto made = daemon::make_directory(command.to); !made) return made;
  const std::string file = command.to + daemon::adapter_weights_file;
  if (auto written = models::write_safetensors(file, tensors, metadata); !written) return written;
  return daemon::describe_adapters(command.to, std::move(told));
}

// Puts adapters into their base: `exported` becomes the whole model.
Result<void> merge(const ExportCommand& command, const models::AdapterDescription& description,
                   ExportedWeights& exported) {
  const auto text = description_of(command.states.front());
  if (!text) return text.error();
  const auto config = models::parse_model_json(*text, command.states.front() + "/config.json");
  if (!config) return config.error();
  auto merged = models::merge_into_base(description, *config, exported.form.layout, exported.weights, command.base);
  if (!merged) return Error{merged.error().code, str(command.states.front(), ": ", merged.error().text)};
  exported.form.layout = std::move(merged->layout);
  exported.weights = std::move(merged->weights);
  exported.digest.reset();  // which was that of the adapters
  return {};
}

Result<void> write_whole(const ExportCommand& command, const ExportedWeights& exported) {
  const models::SafetensorsMetadata metadata = daemon::metadata_of(exported);
  const auto tensors = daemon::tensors_of(exported, command.dtype);
  if (command.to.ends_with(".safetensors")) return models::write_safetensors(command.to, tensors, metadata);
  const auto description = description_of(command.states[0]);
  if (!description) return description.error();
  const auto tokenizer = read_text_file(command.states[0] + "/tokenizer.json");
  const std::uint64_t shard_bytes = command.shard_bytes.value_or(default_shard_bytes);
  if (auto made = daemon::make_directory(command.to); !made) return made;
  if (auto written = models::write_checkpoint(command.to, tensors, metadata, shard_bytes); !written) return written;
  return daemon::describe_export(command.to, exported.form.run, *description, tokenizer ? *tokenizer : "",
                                 command.dtype);
}

Result<void> write_exported(const ExportCommand& command, ExportedWeights& exported) {
  const auto adapters = models::adapters_beside(command.states.front());
  if (!adapters) return adapters.error();
  if (command.merged && !*adapters)
    return Error{Errc::usage, str("--merged puts adapters into their base, and ", command.states.front(), " has none ",
                                  "(model.adapter); leave --merged out")};
  if (*adapters && !command.merged && command.shard_bytes)
    return Error{Errc::usage, "--shard-size cuts a whole model, and adapters are one file; add --merged"};
  if (*adapters && !command.merged) return write_adapters(command, exported, **adapters);
  if (*adapters)
    if (auto merged = merge(command, **adapters, exported); !merged) return merged;
  return write_whole(command, exported);
}

}  // namespace

int run_export_command(const ExportCommand& command) {
  if (command.shard_bytes && command.to.ends_with(".safetensors"))
    return fail({Errc::usage, str("--shard-size cuts a folder's weights into files, and ", command.to,
                                  " is one file; export to a folder")});
  auto exported = what_to_export(command);
  if (!exported) return fail(exported.error());
  const auto written = write_exported(command, *exported);
  if (!written) return fail(written.error());
  const std::string mean = exported->averaged > 0 ? str(", the mean over the last ", exported->averaged) : "";
  std::fprintf(stderr, "%zu parameters after %llu samples%s, in %s\n", exported->weights.size(),
               static_cast<unsigned long long>(exported->samples), mean.c_str(), command.to.c_str());
  return 0;
}

}  // namespace rumor::tools
