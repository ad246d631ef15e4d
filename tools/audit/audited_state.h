// AuditedState: the log of a state directory, and all else that it takes to make its updates again (runtime/AUDIT.md).
//
// The directory may be that of a running peer. Nothing in it is written.
//
// Thread: one owner. Memory: the weights twice; updates stay on the disk.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "runtime/audit/run_audit.h"
#include "runtime/daemon/state/file_disk.h"
#include "runtime/threads/thread_pool.h"
#include "tools/words/command.h"

namespace rumor::tools {

class AuditedState {
 public:
  // Errors: Errc::usage for a run without audit.record; Errc::mismatch for a state of another run; those of the files.
  static Result<std::unique_ptr<AuditedState>> open(const RunSource& run, const std::string& folder);

  const audit::AuditedRun& run() const { return *run_; }
  // With all updates in the log; those that were taken back do not count.
  gossip::ReplicaDigest digest() const { return digest_; }
  std::uint64_t samples() const { return samples_; }
  // The updates of the run that are no longer in the log, and whose steps cannot be made again.
  std::uint64_t before_log() const { return run_->base.have.count(); }

 private:
  explicit AuditedState(const std::string& folder)
      : disk_(daemon::FileDisk::read_only(folder + "/kept")), log_(SIZE_MAX, 0), past_(SIZE_MAX, 0) {}
  Result<void> read(const RunConfig& config, const std::string& folder);
  Result<void> prepare(const models::StartWeights* start);
  Result<void> add_log(const RunForm& form, ReplicaState state);

  daemon::FileDisk disk_;
  UpdateLog log_, past_;  // past_: also what was taken back, since it was in the views of that time
  std::unique_ptr<daemon::ThreadPool> threads_;
  std::unique_ptr<audit::AuditedRun> run_;
  gossip::ReplicaDigest digest_;
  std::uint64_t samples_ = 0;
};

// How far a command is that makes many updates again: a line on stderr every two seconds. False: it was interrupted.
class AuditProgress {
 public:
  explicit AuditProgress(std::uint64_t updates);
  bool operator()();
  bool interrupted() const { return interrupted_; }

 private:
  std::uint64_t updates_, made_ = 0;
  double next_ = 2;  // seconds since the start
  double start_;
  bool interrupted_ = false;
};

// The one of these ids whose name begins with these digits. `option`: how the user gave them, for errors.
// Errors: Errc::usage: there is none, or there are several.
template <class AnId>
Result<AnId> one_named(const std::set<AnId>& ids, const std::string& digits, const std::string& option) {
  std::optional<AnId> found;
  for (const AnId& id : ids) {
    if (!id.hex().starts_with(digits)) continue;
    if (found) return Error{Errc::usage, option + " fits several in the log; give more digits"};
    found = id;
  }
  if (!found) return Error{Errc::usage, option + " fits nothing in the log; `rumor audit` lists what is there"};
  return *found;
}

// The findings as a table, with a line for each doubt.
std::string to_table(const std::vector<audit::StreamFindings>& findings);
std::string to_json(const std::vector<audit::StreamFindings>& findings, const AuditedState& state, bool stopped_early);

}  // namespace rumor::tools
