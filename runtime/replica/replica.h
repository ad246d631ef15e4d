// Replica: the shared weights, the names of the updates they hold, and the fingerprint that proves it.
//
// Exactly-once: verify -> lacking? -> take -> mark is one call of apply(); addition is not idempotent, so
// this is *the* safety property. Arithmetic is wrap-around on 32 bits and commutes, so the entries of what
// was taken may wait: they go onto the weights together, merged, when someone asks for the weights or for the
// view (compress/payload/apply.h: together they need a fraction of the time), in as many threads as there are, or a
// piece at a time. Names and fingerprint move at once. A view on another machine than this processor follows by
// itself: it is handed what was taken, and nothing goes onto the weights here for that.
//
// Thread: one owner (the protocol thread); reading weights lets what waits go onto them, so that counts as
// writing. Memory: one int32 per parameter, the have-set, and at most as many entries as parameters that wait for the
// weights, and as many that a view has yet to follow; mostly they are the same.
// Invariant: fingerprint == F(initial weights) + sum of F(update) over have() == F(weights()).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/payload/apply.h"
#include "compress/payload/update.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"
#include "runtime/replica/fingerprint.h"

namespace rumor {

// What a replica consists of, as values: what checkpoints and snapshots carry.
struct ReplicaState {
  LargeVector<std::int32_t> weights;
  gossip::HaveSet have;
  std::uint64_t fingerprint = 0;
  std::uint64_t samples = 0;  // training samples behind all applied updates: the run's progress
  std::uint64_t period = 0;   // largest period of any applied update
  std::set<gossip::Revocation> revocations;  // what they cover is not among the updates
};

// One change of the weights.
struct Taken {
  compress::SharedUpdate update;         // what it adds
  std::shared_ptr<const Bytes> payload;  // the canonical bytes it came in; null where the caller gave none
  bool back = false;                     // it was taken back: `update` is the opposite of the payload
};

class Replica {
 public:
  // Starts from the run's initial weights, nothing applied. Requires: initial.size() == layout.params().
  Replica(const RunId& run, ParamLayout layout, LargeVector<std::int32_t> initial);

  using Payload = std::shared_ptr<const Bytes>;

  // Takes an update's integers and marks its name, or finds the name there already. `payload`: what the update was
  // decoded from, for who is handed what was taken; null will do.
  // Errors: Errc::corrupt when the entries do not have the fingerprint that the header claims; nothing
  // changed then. Requires: update decoded against this replica's layout.
  Result<gossip::Accepted> apply(const gossip::UpdateHeader& header, compress::SparseUpdate update,
                                 Payload payload = {});
  // The same for an update that is being made here: its header gets its fingerprint. Returns what was taken.
  // Requires: of this name nothing was applied yet.
  compress::SharedUpdate apply_own(gossip::UpdateHeader& header, compress::SparseUpdate update, Payload payload = {});

  // The opposite of apply(): takes back one update that is applied, to the last bit. Requires: this update was
  // applied with this header.
  void take_back(const gossip::UpdateHeader& header, compress::SparseUpdate update, Payload payload = {});
  // All that it covers has been taken back. Requires: not in state().revocations.
  void mark(const gossip::Revocation& revocation);
  bool is_revoked(const UpdateKey& key) const;
  const std::set<gossip::Revocation>& revocations() const { return state_.revocations; }

  // Lets the view follow the weights, wherever they changed since the last call, in the same pass in which
  // what waits goes onto the weights. False: more has changed than was kept in mind, or the state was
  // restored; then read all of the weights.
  bool refresh(const compress::FloatView& view, Parallel& parallel);
  // The same for a view that is kept elsewhere: what changed since the last call, in order, or nothing where refresh()
  // would say false. The weights here are not touched, and may wait.
  std::optional<std::vector<Taken>> hand_over();
  // Nothing has changed since the last refresh() or hand_over().
  bool refreshed() const { return recent_complete_ && recent_.empty(); }
  // What was taken since then, as far as it was kept in mind.
  std::span<const Taken> recent() const { return recent_; }
  // Entries taken since then.
  std::uint64_t recent_entries() const { return recent_entries_; }

  // Takes over a state (of a checkpoint or snapshot). Errors: Errc::corrupt when weights and fingerprint
  // disagree.
  Result<void> restore(ReplicaState state);

  // Puts about so many of the entries that wait onto the weights, for who must not take long. True: none waits now.
  bool apply_some(std::uint64_t entries_max);
  bool nothing_pending() const { return pending_.empty(); }

  // Remembers all that changes the weights, until end_copy(): who copies them in pieces can take it back from
  // each piece (runtime/replica/snapshots.h).
  void begin_copy();
  void end_copy();
  // Lets go of what was remembered, an update at a time: to free a large one takes milliseconds. True: there is none
  // left. Requires: end_copy().
  bool forget_copied();
  const std::vector<compress::SharedUpdate>& since_copy() const { return since_copy_; }

  const ReplicaState& state() const {
    apply_pending_alone();
    return state_;
  }
  std::span<const std::int32_t> weights() const { return state().weights; }
  const gossip::HaveSet& have() const { return state_.have; }
  std::uint64_t fingerprint() const { return state_.fingerprint; }
  std::uint64_t samples() const { return state_.samples; }
  std::uint64_t period() const { return state_.period; }
  const Fingerprinter& fingerprinter() const { return fingerprinter_; }

  // Of the weights; of what waits to go onto them or onto the view.
  std::size_t weight_bytes() const { return capacity_bytes(state_.weights); }
  std::size_t entry_bytes() const;

  // Hash of have-set, fingerprint and count. Cached until the next change.
  const gossip::ReplicaDigest& digest() const;

  // Recomputes the fingerprint from every weight; O(params). False: memory or code has damaged the replica.
  bool verify() const { return fingerprinter_.of_weights(weights()) == state_.fingerprint; }

 private:
  // Unless its name is there already. The header has its fingerprint.
  gossip::Accepted take_named(const gossip::UpdateHeader& header, Taken taken);
  // The change goes into the fingerprint at once, onto the weights later.
  void take(Taken taken, std::uint64_t fingerprint);
  using Updates = std::vector<const compress::SparseUpdate*>;
  // Those that go onto the weights together, piece by piece.
  struct Batch {
    Updates updates;
    std::uint64_t entries = 0, fingerprint = 0;  // of all of them
    std::uint64_t at = 0, moved = 0;             // up to there they are on the weights; fingerprint of what that moved
  };
  // What was taken, goes onto the weights; and the view follows it, where there is one.
  void apply_pending(const compress::FloatView* view, Parallel& parallel) const;
  void apply_pending_alone() const;
  void begin_batch() const;
  std::uint64_t apply_stretch(compress::Stretch where, const compress::FloatView* view) const;
  void end_batch() const;
  void refresh_changed(const compress::FloatView& view, Parallel& parallel) const;
  void forget_recent();

  Fingerprinter fingerprinter_;
  ParamLayout layout_;
  mutable ReplicaState state_;  // but for the weights changed by members that are not const only
  // Not yet on the weights; the first of them are those of the batch, where there is one.
  mutable std::vector<compress::SharedUpdate> pending_;
  mutable Batch batch_;
  mutable std::uint64_t pending_entries_ = 0, pending_fingerprint_ = 0;
  // What the view has yet to follow. With those that wait it has the last of all that was taken in common.
  std::vector<Taken> recent_;
  std::uint64_t recent_entries_ = 0;
  bool recent_complete_ = false;  // recent_ is all that changed since the last refresh() or hand_over()
  bool copying_ = false;
  std::vector<compress::SharedUpdate> since_copy_;
  mutable gossip::ReplicaDigest digest_;
  mutable bool digest_current_ = false;
};

}  // namespace rumor
