// Replica: the shared weights, the names of the updates they hold, and the fingerprint that proves it.
//
// Exactly-once: verify -> lacking? -> apply -> mark is one call of apply(); addition is not idempotent, so
// this is *the* safety property. Arithmetic is wrap-around on 32 bits and commutes.
//
// Thread: one owner (the protocol thread). Memory: one int32 per parameter, plus the have-set.
// Invariant: fingerprint() == F(initial weights) + sum of F(update) over have() == F(weights()).
#pragma once

#include <span>
#include <vector>

#include "compress/update.h"
#include "gossip/update_store.h"
#include "runtime/fingerprint.h"

namespace rumor {

// What a replica consists of, as values: what checkpoints and snapshots carry.
struct ReplicaState {
  std::vector<std::int32_t> weights;
  gossip::HaveSet have;
  std::uint64_t fingerprint = 0;
  std::uint64_t samples = 0;  // training samples behind all applied updates: the run's progress
  std::uint64_t period = 0;   // largest period of any applied update
};

class Replica {
 public:
  // Starts from the run's initial weights, nothing applied. Requires: initial.size() == layout.params().
  Replica(const RunId& run, ParamLayout layout, std::vector<std::int32_t> initial);

  // Adds an update's integers and marks its name, or finds the name there already.
  // Errors: Errc::corrupt when the entries do not have the fingerprint that the header claims; nothing
  // changed then. Requires: update decoded against this replica's layout.
  Result<gossip::Accepted> apply(const gossip::UpdateHeader& header, const compress::SparseUpdate& update);

  // Takes over a state (of a checkpoint or snapshot). Errors: Errc::corrupt when weights and fingerprint
  // disagree.
  Result<void> restore(ReplicaState state);

  const ReplicaState& state() const { return state_; }
  std::span<const std::int32_t> weights() const { return state_.weights; }
  const gossip::HaveSet& have() const { return state_.have; }
  std::uint64_t samples() const { return state_.samples; }
  std::uint64_t period() const { return state_.period; }
  const Fingerprinter& fingerprinter() const { return fingerprinter_; }

  // Hash of have-set, fingerprint and count. Cached until the next change.
  const gossip::ReplicaDigest& digest() const;

  // Recomputes the fingerprint from every weight; O(params). False: memory or code has damaged the replica.
  bool verify() const { return fingerprinter_.of_weights(state_.weights) == state_.fingerprint; }

 private:
  Fingerprinter fingerprinter_;
  ParamLayout layout_;
  ReplicaState state_;
  mutable gossip::ReplicaDigest digest_;
  mutable bool digest_current_ = false;
};

}  // namespace rumor
