// FolderExports: when a follower writes the weights of its run into a folder, and how.
//
// At intervals, or at each new best loss. Each export is one file that holds all of the weights and says what it is
// (exported_weights.h): it is written beside its name, synced and renamed, so a reader finds the last export or the one
// before, whole, whenever the process ends. config.json and the tokenizer are written before it and do not change. An
// export that cannot be written leaves the last one in place and is tried again.
//
// Thread: the protocol thread, but for write(), which touches nothing but its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/time.h"
#include "runtime/daemon/export/exported_weights.h"
#include "runtime/node/node_status.h"

namespace rumor::daemon {

struct ExportPlan {
  std::string folder;
  Duration every = std::chrono::minutes(10);
  bool best = false;         // at each new best loss, instead of at intervals
  std::string dtype = "f32";  // or bf16, f16
};

class FolderExports {
 public:
  static constexpr Duration retry_after = 30s;  // at most, when an export was not written

  // Files that do not change. tokenizer_json: empty if there is none. adapter_json (models/weights/adapter_json.h): for
  // a run of adapters, whose exports are PEFT's two files and nothing else; empty: for whole models.
  struct Description {
    RunId run;
    std::string model_json, tokenizer_json, adapter_json = {};

    const char* weights_file() const { return adapter_json.empty() ? "/model.safetensors" : adapter_weights_file; }
  };

  // Takes up the export of an earlier process in this folder, if there is one. Errors: Errc::usage where the folder has
  // weights that are of another run, or that no follower and no `rumor export` wrote: they are not replaced.
  static Result<FolderExports> open(ExportPlan plan, Description description);

  // Whether an export of this replica is to be made now. `leaving`: the process ends, so the interval does not count.
  bool due(const gossip::ReplicaDigest& digest, TimePoint now, bool leaving) const;
  // Whether weights with this loss are to be exported.
  bool improves(double loss) const;

  // Begins an export. Run write() with what it returns on any thread, one after the other, then ended().
  struct Job {
    ExportPlan plan;
    Description description;
    ExportedWeights weights;
  };
  Job begin(ExportedWeights weights, TimePoint now);
  // Errors: Errc::io; Errc::limit for a weight that the dtype does not hold.
  static Result<void> write(const Job& job);
  // Returns a line for people, or nothing where it was not written for the same reason as the last one. `now`: when the
  // export began.
  std::string ended(const Job& job, const Result<void>& written, TimePoint now);

  const ExportPlan& plan() const { return plan_; }
  ExportStatus status(TimePoint now) const;

 private:
  FolderExports(ExportPlan plan, Description description)
      : plan_(std::move(plan)), description_(std::move(description)) {}

  ExportPlan plan_;
  Description description_;
  std::string newest_digest_;          // of the export under way or, if there is none, of the one in the folder
  std::optional<double> newest_loss_;  // the same
  int under_way_ = 0;                  // one, but for the last
  std::string digest_;                 // of the export in the folder
  std::uint64_t samples_ = 0, exports_ = 0;
  std::optional<double> loss_;
  std::optional<TimePoint> exported_at_;
  TimePoint next_{};
  std::string trouble_;
};

}  // namespace rumor::daemon
