// Bytes of checkpoints and snapshots: runtime/CHECKPOINT.md. No I/O here.
//
// Thread: plain functions.
#pragma once

#include <optional>

#include "runtime/replica.h"
#include "runtime/run_form.h"

namespace rumor {

// What is private to a peer and survives its restart.
struct LocalState {
  NodeId node;
  std::vector<float> residual;
  Bytes optimizer;
  std::vector<gossip::StoredUpdate> log;
};

struct Checkpoint {
  ReplicaState replica;
  std::optional<LocalState> local;  // absent in a snapshot
};

// What a container says of itself: for tools that do not know the run. The whole file's hash is checked.
// Errors: Errc::corrupt, Errc::mismatch (another format version).
Result<RunForm> read_checkpoint_form(BytesView bytes);

Bytes encode_snapshot(const RunForm& form, const ReplicaState& replica);
Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local);

// Errors: Errc::corrupt (damaged: what and where), Errc::mismatch (of another run, model or version).
// The fingerprint is NOT compared with the weights here: Replica::restore does that.
Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes);

}  // namespace rumor
