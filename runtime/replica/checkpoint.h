// Bytes of checkpoints: runtime/CHECKPOINT.md. No I/O here.
//
// Thread: plain functions.
#pragma once

#include <optional>

#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"

namespace rumor {

// The state that is private to a peer and survives its restart.
struct LocalState {
  NodeId node;
  std::vector<float> residual;
  Bytes optimizer;
  // Its model is one of its own: the replica, which is its public copy, and the residual
  // (runtime/exchange/neighbourhood.h).
  bool own_model = false;
  // In a run with records (runtime/AUDIT.md): the own update behind which residual and optimizer were in this state.
  // Absent: the peer had made steps since, or the run has no records.
  std::optional<UpdateKey> point = {};
};

struct Checkpoint {
  ReplicaState replica;
  LocalState local;
};

// The weights that the peer would use: the replica's, or those of its own model.
std::vector<float> model_of(const RunForm& form, const Checkpoint& checkpoint);

// Reads run, layout and grid from a checkpoint, for tools that do not know the run. The whole file's hash is checked.
// Errors: Errc::corrupt, Errc::mismatch (another format version).
Result<RunForm> read_checkpoint_form(BytesView bytes);

Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local);

// Errors: Errc::corrupt (damaged: what and where), Errc::mismatch (of another run, model or version).
// The fingerprint is NOT compared with the weights here: Replica::restore does that.
Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes);

// The same without the private state: a public copy, as peers send it (PROTOCOL.md 6.14). Errors: as
// decode_checkpoint().
Bytes encode_copy(const RunForm& form, const ReplicaState& copy);
Result<ReplicaState> decode_copy(const RunForm& form, BytesView bytes);

// Revocations as checkpoints and manifests hold them. False when there are too many, they do not ascend, or one
// is none.
void write_revocations(ByteWriter& out, const std::set<gossip::Revocation>& revocations);
bool read_revocations(ByteReader& in, std::set<gossip::Revocation>& revocations);

}  // namespace rumor
