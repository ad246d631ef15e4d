// Contributions: who trained how much of a run, counted from the signed headers of its updates.
//
// A header says how many training samples are behind its update. The table adds them up for each stream, together with
// the names that it has counted, so no update counts twice and the sums outlive the log, which drops old updates. An
// update that leaves the replica leaves the sums.
//
// *Unknown samples.* A replica that came as a snapshot (gossip/PROTOCOL.md 6.7) has the names of its updates and the
// samples of all of them together, but not whose samples they are. The table then knows the number of updates of each
// stream, and shows their samples as unknown. It never divides the rest among the streams. A snapshot does not carry
// the table: its manifest must have equal bytes on all donors, and each of them may know something else.
//
// *Whose stream.* A header names its origin. A stream without a header has only its name, which shows whether it is
// of a given node (gossip/trust/signing.h). So the table tries the nodes that its owner knows.
//
// Thread: one owner, the protocol thread. Memory: some 200 bytes a stream. No clock: the owner says the time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "gossip/contract/have_set.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/figures.h"
#include "runtime/base/result.h"

namespace rumor {

// A row of the table: a stream, or all streams of a node.
struct Contribution {
  NodeId node;                        // zero: not known
  StreamId stream;                    // zero: the row is of a node
  std::uint64_t streams = 0;
  std::uint64_t updates = 0;          // in the replica
  std::uint64_t updates_unknown = 0;  // among them those whose samples are not known
  std::uint64_t samples = 0;          // of all others
  std::uint64_t samples_of_run = 0;   // of all peers together, known or not
  std::uint64_t taken_back = 0;       // updates that this peer held until they were revoked
  // When the first and the last of the updates came here, in seconds since 1970; 0: not known.
  std::uint64_t first_seen = 0, last_seen = 0;
  std::uint64_t now = 0;  // 0: there is none, as in a file
  // Segments of the node that this peer's process has made again, by outcome (runtime/AUDIT.md); set by its owner.
  std::uint64_t agreed = 0, untold = 0, differ = 0;
  std::string untold_why = {};  // of the last that could not be told
  std::uint64_t withheld = 0;  // drawn ones in a row whose state the node owed and did not give

  std::uint64_t audited() const { return agreed + untold + differ; }
  std::string name() const { return node.is_zero() ? "unknown" : node.hex(); }
  // Its part of all samples of the run; nothing where some of its own are not known.
  std::optional<double> share() const;
  std::optional<std::uint64_t> seconds_since(std::uint64_t seen) const;
};

struct ContributionTable {
  std::vector<Contribution> nodes;    // by samples, the largest first
  std::vector<Contribution> streams;  // by when they were last seen, the newest first; 256 at most
  std::uint64_t samples_unknown = 0;  // samples of the run that no row counts
};

class Contributions {
 public:
  // In seconds since 1970: what comes from now on is seen then.
  void set_time(std::uint64_t unix_seconds) { now_ = unix_seconds; }

  // The replica has this update. One that is counted already changes nothing.
  void applied(const gossip::UpdateHeader& header);
  // The replica no longer has it. `revoked`: by a revocation (PROTOCOL.md 6.10).
  void removed(const gossip::UpdateHeader& header, bool revoked);
  bool counts(const UpdateKey& key) const { return counted_.contains(key); }
  // The replica has exactly these updates, since a checkpoint or a snapshot has replaced it. What was counted and is
  // missing leaves the table. Where only a part of a stream is missing its samples are no longer known.
  void reconcile(const gossip::HaveSet& have, const std::function<bool(const UpdateKey&)>& revoked);

  // `have` and `samples`: of the replica. `nodes`: whose streams the unknown ones may be.
  ContributionTable table(const gossip::HaveSet& have, std::uint64_t samples, std::span<const NodeId> nodes) const;

  // For the state directory (runtime/CHECKPOINT.md).
  Bytes encode(const RunId& run) const;
  // Errors: Errc::corrupt, Errc::mismatch (of another run or version).
  static Result<Contributions> decode(const RunId& run, BytesView bytes);

 private:
  struct Row {
    NodeId node;
    std::uint64_t samples = 0, taken_back = 0, first_seen = 0, last_seen = 0;
  };
  void see(Row& row) const;
  void forget(const StreamId& stream, const gossip::SeqRanges& lost, bool revoked);
  void find_nodes(std::span<const NodeId> nodes) const;

  std::uint64_t now_ = 0;
  gossip::HaveSet counted_;
  // To find a node is to cache it: table() changes nothing else.
  mutable std::map<StreamId, Row> rows_;
  mutable std::set<NodeId> tried_;  // none of the streams without a node is theirs
};

// Adds the members contributions, contribution_streams and samples_unknown.
void add_contributions(FigureSheet& sheet, const ContributionTable& table);

}  // namespace rumor
