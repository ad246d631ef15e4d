// HeldUpdates: the updates that a peer holds: their sum in a replica, their payloads in a log for other peers, and
// snapshots of both. It is the part of gossip::UpdateStore that every store with weights has in common; a derived
// class adds accept().
//
// Thread: one owner. Memory: that of replica, log and snapshots; while a revocation is carried out also the payloads of
// all updates that it covers, since each must be readable before the first is taken back.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "compress/payload/update.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/parallel.h"
#include "runtime/contributions/contributions.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"
#include "runtime/replica/snapshots.h"
#include "runtime/replica/update_log.h"

namespace rumor {

class HeldUpdates : public virtual gossip::UpdateStore {
 public:
  // Starts with the run's initial weights and an empty log in memory. `cache_bytes`: payloads kept in memory once the
  // log is on a disk.
  HeldUpdates(RunForm form, LargeVector<std::int32_t> initial, std::size_t log_bytes, std::size_t cache_bytes);

  // gossip::UpdateStore
  const gossip::HaveSet& have() const override { return replica_.have(); }
  gossip::ReplicaDigest digest() const override;
  bool lacks_weights() const override { return lacks_weights_; }
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const override { return log_.find(key); }
  bool keeps(const UpdateKey& key) const override { return log_.contains(key); }
  const std::set<gossip::Revocation>& revocations() const override { return replica_.revocations(); }
  Result<void> revoke(const gossip::Revocation& revocation) override;
  bool verify() const override { return replica_.verify(); }
  Result<void> take_back(const UpdateKey& key) override;
  std::unique_ptr<gossip::LinkCoder> coder_for_link() const override;
  gossip::SnapshotPort& snapshots() override { return snapshots_; }
  void acknowledged(const gossip::HaveSet& by_all, TimePoint now) override { log_.acknowledged(by_all, now); }

  // Moves the log and the snapshot being downloaded to `disk`, which must outlive this, and reads what is there.
  // Returns how many bytes of the log are damaged and left out. Errors: Errc::mismatch when they are of another run.
  Result<std::uint64_t> open(Disk& disk);
  // Applies the logged updates that the replica lacks: after a snapshot, or after a restart from an older checkpoint.
  // Those that are revoked or damaged leave the log. Brings contributions() in line with the replica. Returns whether
  // the replica lacked any.
  bool replay();

  // The change in a payload, which has a record exactly where the run has them (form().recorded).
  // `parallel`: threads that may decode it; null: the caller's. Errors: Errc::corrupt.
  Result<compress::SparseUpdate> decode(const Bytes& payload, Parallel* parallel = nullptr) const;
  // Applies and logs an update. Errors: Errc::corrupt when its fingerprint is wrong; nothing changed then.
  // Requires: `change` is what its payload holds.
  Result<gossip::Accepted> apply(const gossip::StoredUpdate& update, compress::SparseUpdate change, TimePoint now);
  // Logs an own update that the replica has taken already (Replica::apply_own).
  void log_own(const gossip::StoredUpdate& update, TimePoint now);

  // Whether the weights are not yet the run's. install() ends that; the owner says so for a checkpoint.
  void set_lacks_weights(bool lacks) { lacks_weights_ = lacks; }

  const RunForm& form() const { return form_; }
  Replica& replica() { return replica_; }
  const Replica& replica() const { return replica_; }
  const UpdateLog& log() const { return log_; }
  // Whose updates they are. After a restart its owner sets those of the life before, then calls replay().
  Contributions& contributions() { return contributions_; }
  const Contributions& contributions() const { return contributions_; }

 protected:
  // Replaces the replica by the state of a snapshot, then replays the log. A derived class may check the state first.
  // Errors: Errc::corrupt; the replica is unchanged then.
  virtual Result<void> install(ReplicaState state);

 private:
  // Out of the replica and the log. Requires: it is in both.
  void take_off(const gossip::StoredUpdate& update, bool revoked);
  void count_from_log(const UpdateKey& key);

  RunForm form_;
  Replica replica_;
  UpdateLog log_;
  Contributions contributions_;
  Snapshots snapshots_;
  bool lacks_weights_ = false;
};

}  // namespace rumor
