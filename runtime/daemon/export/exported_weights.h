// ExportedWeights: the weights of a run as safetensors, with what is known of them: for `rumor export` and followers.
//
// Metadata of the file: `format run samples updates digest contributions`, and where they are known `averaged_samples`,
// `loss`, `exported_unix_s`. Digest is that of /status; contributions is the list of the same name there, as JSON.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/weights/adapter_json.h"
#include "models/weights/safetensors_writer.h"
#include "runtime/contributions/contributions.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"

namespace rumor::daemon {

// A buffer of the program that trained, such as a running mean of BatchNorm.
struct ExportedBuffer {
  std::string name, dtype;
  std::vector<std::uint32_t> shape = {};
  Bytes bytes = {};
};

struct ExportedWeights {
  RunForm form;
  std::vector<float> weights = {};
  std::vector<ExportedBuffer> buffers = {};
  std::uint64_t samples = 0;
  std::uint64_t averaged = 0;  // the last of them, which the weights are the mean over; 0: they are the last ones
  std::optional<gossip::ReplicaDigest> digest = {};  // nothing where the weights are not those of a replica
  ContributionTable contributions = {};
  std::optional<double> loss = {};  // of these weights, on the test set
  std::uint64_t unix_seconds = 0;   // 0: not said
};

// A replica as weights to be exported.
ExportedWeights exported_replica(const RunForm& form, const ReplicaState& replica);

// `dtype`: f32, bf16 or f16. Refers to `exported`.
std::vector<models::SafetensorsTensor> tensors_of(const ExportedWeights& exported, const std::string& dtype);
models::SafetensorsMetadata metadata_of(const ExportedWeights& exported);
// The same of adapters, with the hash of their base as base_sha256: PEFT's description has no member for it.
models::SafetensorsMetadata metadata_of(const ExportedWeights& exported, const models::AdapterDescription& adapters);

// Files of adapters in a folder, as PEFT names them. describe_adapters() writes adapter_config.json, whole or not at
// all. Errors: Errc::io.
inline constexpr const char* adapter_weights_file = "/adapter_model.safetensors";
Result<void> describe_adapters(const std::string& folder, models::AdapterDescription adapters);

// Writes config.json, from the model's description (models/weights/model_json.h), and the tokenizer unless it is empty,
// each whole or not at all. The description also gets the run's id as "rumor": {"run"}: it does not change from one
// export to the next, so weights and description fit at every moment. Errors: Errc::io.
Result<void> describe_export(const std::string& folder, const RunId& run, const std::string& description,
                             const std::string& tokenizer, const std::string& dtype);

}  // namespace rumor::daemon
