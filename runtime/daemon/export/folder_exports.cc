#include "runtime/daemon/export/folder_exports.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "models/weights/safetensors.h"
#include "runtime/base/text.h"
#include "runtime/daemon/state/storage.h"

namespace rumor::daemon {

namespace {

const char* const shard_index = "/model.safetensors.index.json";

std::string value_of(const std::map<std::string, std::string>& metadata, const std::string& name) {
  const auto at = metadata.find(name);
  return at == metadata.end() ? std::string() : at->second;
}

Error not_ours(const std::string& file, const std::string& why) {
  return {Errc::usage, str("will not replace ", file, ": ", why, "; name another folder with --export")};
}

// Writes what lies beside the weights, and returns their metadata.
Result<models::SafetensorsMetadata> describe(const FolderExports::Job& job) {
  const FolderExports::Description& files = job.description;
  const std::string& folder = job.plan.folder;
  if (files.adapter_json.empty()) {
    auto described = describe_export(folder, files.run, files.model_json, files.tokenizer_json, job.plan.dtype);
    if (!described) return described.error();
    return metadata_of(job.weights);
  }
  auto adapters = models::parse_adapter_json(files.adapter_json, "adapter_config.json");
  if (!adapters) return adapters.error();
  if (auto described = describe_adapters(folder, *adapters); !described) return described.error();
  return metadata_of(job.weights, *adapters);
}

}  // namespace

Result<FolderExports> FolderExports::open(ExportPlan plan, Description description) {
  FolderExports exports(std::move(plan), std::move(description));
  const std::string& folder = exports.plan_.folder;
  const std::string path = folder + exports.description_.weights_file();
  std::error_code ignored;
  if (std::filesystem::exists(folder + shard_index, ignored))
    return not_ours(path, "there are weights in several files beside it, which readers would mix with it");
  if (!std::filesystem::exists(path, ignored)) return exports;
  const auto file = models::SafetensorsFile::read(path);
  if (!file) return not_ours(path, file.error().text);
  const std::string run = value_of(file->metadata(), "run");
  if (run != exports.description_.run.hex())
    return not_ours(path, run.empty() ? "another program wrote it" : "it is of run " + run.substr(0, 8));
  exports.digest_ = exports.newest_digest_ = value_of(file->metadata(), "digest");
  exports.samples_ = std::strtoull(value_of(file->metadata(), "samples").c_str(), nullptr, 10);
  if (const std::string loss = value_of(file->metadata(), "loss"); !loss.empty())
    exports.loss_ = exports.newest_loss_ = std::strtod(loss.c_str(), nullptr);
  return exports;
}

bool FolderExports::due(const gossip::ReplicaDigest& digest, TimePoint now, bool leaving) const {
  if (plan_.best || digest.updates == 0) return false;
  if (!leaving && (under_way_ > 0 || now < next_)) return false;
  return digest_text(digest) != newest_digest_;
}

bool FolderExports::improves(double loss) const {
  return plan_.best && (!newest_loss_ || loss < *newest_loss_);
}

FolderExports::Job FolderExports::begin(ExportedWeights weights, TimePoint now) {
  ++under_way_;
  next_ = now + plan_.every;
  newest_digest_ = weights.digest ? digest_text(*weights.digest) : "";
  newest_loss_ = weights.loss;
  return {plan_, description_, std::move(weights)};
}

Result<void> FolderExports::write(const Job& job) {
  const std::string& folder = job.plan.folder;
  const std::string path = folder + job.description.weights_file(), beside = path + ".part";
  if (auto made = make_directory(folder); !made) return made;
  const auto metadata = describe(job);
  if (!metadata) return metadata.error();
  const auto tensors = tensors_of(job.weights, job.plan.dtype);
  if (auto written = models::write_safetensors_part(beside, tensors, *metadata); !written) return written;
  return publish_file(beside, path);
}

std::string FolderExports::ended(const Job& job, const Result<void>& written, TimePoint now) {
  --under_way_;
  if (!written) {
    newest_digest_ = digest_;
    newest_loss_ = loss_;
    next_ = now + std::min(plan_.every, retry_after);
    const bool said = trouble_ == written.error().text;
    trouble_ = written.error().text;
    if (said) return {};
    return str("not exported: ", trouble_, "; the last export, if there is one, is whole; trying again");
  }
  trouble_.clear();
  ++exports_;
  digest_ = job.weights.digest ? digest_text(*job.weights.digest) : "";
  samples_ = job.weights.samples;
  loss_ = job.weights.loss;
  exported_at_ = now;
  return str("exported ", samples_, " samples, digest ", digest_, loss_ ? str(", loss ", fixed(*loss_, 4)) : "",
             ", to ", plan_.folder);
}

ExportStatus FolderExports::status(TimePoint now) const {
  ExportStatus status{.folder = plan_.folder, .exports = exports_, .samples = samples_, .digest = digest_,
                      .trouble = trouble_};
  if (exported_at_) status.seconds_ago = to_seconds(now - *exported_at_);
  return status;
}

}  // namespace rumor::daemon
