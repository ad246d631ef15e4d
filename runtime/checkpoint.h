// Bytes of checkpoints: runtime/CHECKPOINT.md. No I/O here.
//
// Thread: plain functions.
#pragma once

#include "runtime/replica.h"
#include "runtime/run_form.h"

namespace rumor {

// What is private to a peer and survives its restart.
struct LocalState {
  NodeId node;
  std::vector<float> residual;
  Bytes optimizer;
};

struct Checkpoint {
  ReplicaState replica;
  LocalState local;
};

// What a container says of itself: for tools that do not know the run. The whole file's hash is checked.
// Errors: Errc::corrupt, Errc::mismatch (another format version).
Result<RunForm> read_checkpoint_form(BytesView bytes);

Bytes encode_checkpoint(const RunForm& form, const ReplicaState& replica, const LocalState& local);

// Errors: Errc::corrupt (damaged: what and where), Errc::mismatch (of another run, model or version).
// The fingerprint is NOT compared with the weights here: Replica::restore does that.
Result<Checkpoint> decode_checkpoint(const RunForm& form, BytesView bytes);

// Revocations as checkpoints and manifests hold them. False when there are too many, they do not ascend, or one
// is none.
void write_revocations(ByteWriter& out, const std::set<gossip::Revocation>& revocations);
bool read_revocations(ByteReader& in, std::set<gossip::Revocation>& revocations);

}  // namespace rumor
