// Replica: the shared weights, the names of the updates they hold, and the fingerprint that proves it.
//
// Exactly-once: apply() verifies an update, looks whether its name is lacking, takes it and marks the name, all in one
// call. Addition is not idempotent, so this is *the* safety property.
//
// Pending: names and fingerprint move at once, entries later. Arithmetic wraps around on 32 bits and commutes, so
// pending entries go onto the weights together, merged, when somebody asks for the weights or for the view: together
// they need a fraction of the time (compress/payload/apply.h). Several threads add them, or one a piece at a time. A
// view on a GPU follows by itself: hand_over() gives it the changes, and the weights here may wait.
//
// Thread: one owner (the protocol thread). Reading the weights adds pending entries to them, so it counts as writing.
// A compress::WeightView of weights() is for any thread: the weights stay where they are until release(), and each is
// written as a whole.
// Memory: one int32 per parameter, the have-set, and at most as many pending entries as parameters, and as many that a
// view has yet to follow; mostly they are the same.
// Invariant: fingerprint == F(initial weights) + sum of F(update) over have() == F(weights()).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/payload/apply.h"
#include "compress/payload/update.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"
#include "runtime/replica/fingerprint.h"

namespace rumor {

// A replica as values. Checkpoints and snapshots carry it.
struct ReplicaState {
  LargeVector<std::int32_t> weights;
  gossip::HaveSet have;
  std::uint64_t fingerprint = 0;
  std::uint64_t samples = 0;  // training samples behind all applied updates: the run's progress
  std::uint64_t period = 0;   // largest period of any applied update
  std::set<gossip::Revocation> revocations;  // no update that they cover is in `have`
};

// Hash of have-set and revocations, fingerprint and count: what peers compare.
gossip::ReplicaDigest digest_of(const ReplicaState& state);
// The digest as people and programs see it: 32 hex digits.
std::string digest_text(const gossip::ReplicaDigest& digest);

// One change of the weights.
struct Taken {
  compress::SharedUpdate update;         // the entries that are added
  std::shared_ptr<const Bytes> payload;  // the canonical bytes it came in; null where the caller gave none
  bool back = false;                     // it was taken back: `update` is the opposite of the payload
};

class Replica {
 public:
  // Starts from the run's initial weights, nothing applied. Requires: initial.size() == layout.params().
  Replica(const RunId& run, ParamLayout layout, LargeVector<std::int32_t> initial);

  using Payload = std::shared_ptr<const Bytes>;

  // Takes an update's entries and marks its name, or finds the name marked already. `payload`: the bytes that the
  // update was decoded from, for hand_over(); may be null.
  // Errors: Errc::corrupt when the entries do not have the fingerprint that the header claims; nothing
  // changed then. Requires: update decoded against this replica's layout.
  Result<gossip::Accepted> apply(const gossip::UpdateHeader& header, compress::SparseUpdate update,
                                 Payload payload = {});
  // The same for an update that is being made here: its header gets its fingerprint. Returns the entries.
  // Requires: no update of this name was applied yet.
  compress::SharedUpdate apply_own(gossip::UpdateHeader& header, compress::SparseUpdate update, Payload payload = {});

  // The opposite of apply(): takes back one update that is applied, to the last bit. Requires: this update was
  // applied with this header.
  void take_back(const gossip::UpdateHeader& header, compress::SparseUpdate update, Payload payload = {});
  // Requires: every update that it covers has been taken back; not in revocations(), nor needless beside them.
  void mark(const gossip::Revocation& revocation);
  bool is_revoked(const UpdateKey& key) const;
  const std::set<gossip::Revocation>& revocations() const { return state_.revocations; }

  // Sets the view wherever the weights changed since the last call, in the pass that adds pending entries. False: more
  // has changed than is remembered, or the state was restored; then read all of the weights.
  bool refresh(const compress::FloatView& view, Parallel& parallel);
  // The same for a view that reads the weights themselves (compress::WeightView): adds all pending entries to them.
  // False: more has changed than recent() was.
  bool refresh(Parallel& parallel);
  // The same for a view on a GPU: the changes since the last call, in order, or nothing where refresh() would return
  // false. Pending entries stay pending.
  std::optional<std::vector<Taken>> hand_over();
  // Nothing has changed since the last refresh() or hand_over().
  bool refreshed() const { return recent_complete_ && recent_.empty(); }
  // The changes since then, as far as they are remembered.
  std::span<const Taken> recent() const { return recent_; }
  // The number of their entries.
  std::uint64_t recent_entries() const { return recent_entries_; }

  // Takes over a state (of a checkpoint or snapshot). Errors: Errc::corrupt when weights and fingerprint
  // disagree.
  Result<void> restore(ReplicaState state);

  // Gives the weights away, at the end. Requires: nothing is asked of the replica afterwards but its sizes.
  LargeVector<std::int32_t> release();

  // Adds about `entries_max` pending entries to the weights, for a caller with little time. True: none is pending now.
  bool apply_some(std::uint64_t entries_max);
  bool nothing_pending() const { return pending_.empty(); }

  // A position whose weight was beyond range_end when entries were added to the weights, or when a state was
  // restored: the run has come to the end of the grid, beyond which weights wrap around. Which one, where there are
  // several, depends on the order of updates.
  std::optional<std::uint32_t> near_range_end() const { return near_range_end_; }

  // Remembers all changes of the weights until end_copy(), so that a copy made in pieces can take them back from each
  // piece (runtime/replica/snapshots.h).
  void begin_copy();
  void end_copy();
  // Forgets one of the remembered updates: to free a large one takes milliseconds. True: none is left.
  // Requires: end_copy().
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

  // Bytes of the weights, and of entries that are pending, not yet in the view, or remembered.
  std::size_t weight_bytes() const { return capacity_bytes(state_.weights); }
  std::size_t entry_bytes() const;

  // digest_of(state()), cached until the next change.
  const gossip::ReplicaDigest& digest() const;

  // Recomputes the fingerprint from every weight; O(params). False: memory or code has damaged the replica.
  bool verify() const { return fingerprinter_.of_weights(weights()) == state_.fingerprint; }

 private:
  // Takes the change unless its name is marked already. Requires: the header has its fingerprint.
  gossip::Accepted take_named(const gossip::UpdateHeader& header, Taken taken);
  // The change moves the fingerprint at once, the weights later.
  void take(Taken taken, std::uint64_t fingerprint);
  using Updates = std::vector<const compress::SparseUpdate*>;
  // Pending updates that are added to the weights together, piece by piece.
  struct Batch {
    Updates updates;
    std::uint64_t entries = 0, fingerprint = 0;  // of all of them
    std::uint64_t at = 0;     // they are on the weights below this position
    std::uint64_t moved = 0;  // the fingerprint of that part
  };
  // Adds all pending entries to the weights, and sets the view there where it is not null.
  void apply_pending(const compress::FloatView* view, Parallel& parallel) const;
  void apply_pending_alone() const;
  void begin_batch() const;
  // The work on a stretch of weights.
  struct Moved {
    std::uint64_t fingerprint = 0;               // of the changes, as the weights really moved
    std::optional<std::uint32_t> near_range_end = {};  // see near_range_end()
  };
  Moved apply_stretch(compress::Stretch where, const compress::FloatView* view) const;
  void add_to_batch(const Moved& moved) const;
  void end_batch() const;
  void refresh_changed(const compress::FloatView& view, Parallel& parallel) const;
  void forget_recent();

  Fingerprinter fingerprinter_;
  ParamLayout layout_;
  // Const members add pending entries to the weights: that changes no value that anybody can see.
  mutable ReplicaState state_;
  // Not yet on the weights. Where there is a batch, its updates are the first.
  mutable std::vector<compress::SharedUpdate> pending_;
  mutable Batch batch_;
  mutable std::uint64_t pending_entries_ = 0, pending_fingerprint_ = 0;
  mutable std::optional<std::uint32_t> near_range_end_;
  // Changes that the view has yet to follow. pending_ and recent_ both end with the change taken last.
  std::vector<Taken> recent_;
  std::uint64_t recent_entries_ = 0;
  bool recent_complete_ = false;  // recent_ is all that changed since the last refresh() or hand_over()
  bool copying_ = false;
  std::vector<compress::SharedUpdate> since_copy_;
  mutable gossip::ReplicaDigest digest_;
  mutable bool digest_current_ = false;
};

}  // namespace rumor
