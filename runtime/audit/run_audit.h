// RunAudit: makes the updates in a log again, stream by stream, and counts what agrees (runtime/AUDIT.md).
//
// A stream that goes on from an earlier one of its peer comes behind it, since that one makes its first state.
//
// Thread: one owner. Memory: that of one StreamReplay, and residual and optimizer for each restart in the log.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/audit/stream_replay.h"

namespace rumor::audit {

// The verdicts on the updates of a stream, counted.
struct StreamFindings {
  NodeId origin;
  StreamId stream;
  std::uint64_t updates = 0;  // that were asked for
  std::uint64_t samples = 0;  // of these, as their headers say
  std::uint64_t agree = 0, differ = 0, cannot_tell = 0;
  std::uint64_t fewer_peers = 0;    // StreamReplay::fewer_peers()
  std::uint64_t first_doubt = 0;    // the first update that does not agree; 0: there is none
  std::string why = {};             // and why it does not
};

// Takes every update that the log has off the newest state. Errors: Errc::corrupt for an update that is damaged.
Result<ReplicaState> without_log(const RunForm& form, ReplicaState newest, const UpdateLog& log);

class RunAudit {
 public:
  // Refers to `run`, which must outlive it.
  explicit RunAudit(const AuditedRun& run);

  struct Wanted {
    std::optional<NodeId> origin = {};    // absent: all
    std::optional<StreamId> stream = {};  // absent: all
    std::uint64_t first = 1, last = UINT64_MAX;  // updates of each stream that count
  };
  // Called after each update that was made again. False: stop here.
  using Progress = std::function<bool(const StreamReplay& replay, const StreamFindings& so_far)>;
  // Streams that the wanted ones go on from are made again too, without being reported.
  std::vector<StreamFindings> audit(const Wanted& wanted, const Progress& progress);

  // Updates in the log.
  std::uint64_t updates() const { return updates_; }
  // The streams that have updates in the log, with their peers.
  std::map<StreamId, NodeId> streams() const;

 private:
  struct Stream {
    NodeId origin;
    std::vector<std::uint64_t> seqs;          // ascending
    std::optional<UpdateKey> continues = {};  // as its first record says
  };
  // Once; nothing more of any stream when progress said so.
  void make_again(const StreamId& stream, const Wanted& wanted, const Progress& progress);
  void make_again(StreamReplay& replay, const Stream& stream, const Wanted& wanted, StreamFindings& findings,
                  const Progress& progress);
  void keep_if_wanted(const UpdateKey& point, const StreamReplay& replay);

  const AuditedRun& run_;
  std::uint64_t updates_ = 0;
  std::map<StreamId, Stream> streams_;
  std::map<UpdateKey, std::optional<TrainerState>> states_;  // behind the updates from which streams go on
  std::map<StreamId, StreamFindings> findings_;
  bool stopped_ = false;
};

}  // namespace rumor::audit
