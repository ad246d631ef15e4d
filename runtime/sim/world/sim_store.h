// SimStore: the store of a simulated peer without a trainer. Weights, have-set, log, payload format, checkpoint and
// snapshot are those of a real node (runtime/replica/held_updates.h, checkpoint.h); only learning is left out.
//
// PayloadStore: no weights at all, and payloads of a given size, each kept once for all peers. It serves simulations of
// a thousand peers.
//
// Thread: one owner. Memory: SimStore: weights and log; PayloadStore: its have-set.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gossip/contract/blob_snapshots.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/prng.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/replica/disk.h"
#include "runtime/replica/held_updates.h"

namespace rumor::sim {

// The driver of a simulated peer asks this of its store, beyond gossip::UpdateStore.
class PeerStore : public virtual gossip::UpdateStore {
 public:
  // A new own update, applied and logged already.
  virtual gossip::StoredUpdate seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq,
                                    Prng& prng) = 0;
  // The checkpoint file, and taking one up. Errors: those of decode_checkpoint and Replica::restore.
  virtual Bytes checkpoint(const NodeId& self) const = 0;
  virtual Result<void> restore(BytesView checkpoint) = 0;

  virtual std::uint64_t fingerprint() const = 0;
  virtual const Replica* replica() const { return nullptr; }
  virtual bool log_in_bounds() const { return true; }
  // Reads everything on the disk but checkpoints; before restore().
  virtual void open(Disk&) {}
  // After restore(): applies the logged updates that the checkpoint lacks.
  virtual void replay() {}

  // Updates of others that were applied one by one since the last call.
  std::vector<gossip::UpdateHeader> take_applied() { return std::move(applied_); }
  // The replica was replaced (restore, install) since the last call.
  bool take_replaced() { return std::exchange(replaced_, false); }

 protected:
  std::vector<gossip::UpdateHeader> applied_;
  bool replaced_ = false;
};

// The model that all peers of a simulation share.
struct SimModel {
  RunForm form;
  LargeVector<std::int32_t> initial;
  std::size_t log_bytes = 1 << 20;
  std::uint32_t entries_max = 8;  // of an update

  // `params` weights in up to three tensors, drawn from the seed.
  static SimModel make(std::uint32_t params, std::uint64_t seed);
};

class SimStore final : public PeerStore, private HeldUpdates {
 public:
  // Refers to `model`.
  explicit SimStore(const SimModel& model);

  Result<gossip::Accepted> accept(const gossip::StoredUpdate& update) override;
  Result<void> take_back(const UpdateKey& key) override;

  gossip::StoredUpdate seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq,
                            Prng& prng) override;
  Bytes checkpoint(const NodeId& self) const override;
  Result<void> restore(BytesView checkpoint) override;
  void open(Disk& disk) override;
  void replay() override;
  std::uint64_t fingerprint() const override { return held().replica().fingerprint(); }
  bool log_in_bounds() const override;

  const Replica* replica() const override { return &held().replica(); }

 private:
  HeldUpdates& held() { return *this; }
  const HeldUpdates& held() const { return *this; }
  Result<void> install(ReplicaState state) override;

  const SimModel& model_;
};

// Every payload of a run, once.
struct PayloadPool {
  static RunId run() { return RunId::from(Bytes(RunId::size, 7)); }
  std::size_t payload_bytes = 0;
  std::map<UpdateKey, gossip::StoredUpdate> updates;
};

class PayloadStore final : public PeerStore {
 public:
  explicit PayloadStore(PayloadPool& pool) : pool_(pool) {}
  PayloadStore(const PayloadStore&) = delete;

  const gossip::HaveSet& have() const override { return have_; }
  gossip::ReplicaDigest digest() const override;
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const override;
  Result<gossip::Accepted> accept(const gossip::StoredUpdate& update) override;
  Hash256 hash_of(const Bytes&) const override;
  const std::set<gossip::Revocation>& revocations() const override { return revocations_; }
  Result<void> revoke(const gossip::Revocation& revocation) override;
  bool verify() const override { return true; }
  Result<void> take_back(const UpdateKey& key) override;
  std::unique_ptr<gossip::LinkCoder> coder_for_link() const override;
  gossip::SnapshotPort& snapshots() override { return snapshots_; }

  gossip::StoredUpdate seal(const StreamId& stream, const NodeId& origin, std::uint64_t seq,
                            Prng& prng) override;
  Bytes checkpoint(const NodeId& self) const override;
  Result<void> restore(BytesView checkpoint) override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  void mark(const UpdateKey& key, std::uint64_t fingerprint);

  PayloadPool& pool_;
  // No cut is given to others: without weights it would cost nothing and hide the cost of updates.
  gossip::BlobSnapshots snapshots_{
      [](const gossip::HaveSet*) { return Error{Errc::limit, "there are no weights to make a cut of"}; },
      [this](BytesView bytes) { return restore(bytes); }, [this]() -> const gossip::HaveSet& { return have_; }};
  gossip::HaveSet have_;
  std::set<gossip::Revocation> revocations_;
  std::uint64_t fingerprint_ = 0;
  mutable gossip::ReplicaDigest digest_;
  mutable bool digest_current_ = false;
};

}  // namespace rumor::sim
