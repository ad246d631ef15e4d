// Snapshots: makes cuts of a replica for joiners, and puts those of others together (gossip/contract/snapshot_port.h).
//
// *Making a cut.* Nobody may wait for the copy: half a gigabyte takes longer than training may pause. So the weights
// are copied in pieces between other work, and they change meanwhile. Updates that came since the copy began are taken
// back from each piece: sums commute, so the piece is then what it was at the beginning, to the last bit. Updates that
// the cut does not name are taken back in the same way, from the log. Then each chunk is hashed, and the fingerprint
// computed on the way must be that of the updates: a damaged replica is given to nobody. Copy-on-write was the
// alternative: but one update touches nearly every page, so the first one would copy them all at once.
//
// *Taking one.* Chunks go to memory and, where there is a disk, to join.chunks beside join.manifest. A process that
// starts again reads both and keeps the chunks that have the hash in the manifest.
//
// A chunk travels as one byte and its weights. 0: as they are. 1: compressed by zstd, after folding (sign to the lowest
// bit) and byte by byte, all lowest bytes first. Weights of a trained model take 60 to 70 % of their size then.
//
// Thread: one owner, the protocol thread. Memory: a copy of the weights while a cut is held, another while
// one is taken.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/contract/snapshot_port.h"
#include "runtime/replica/disk.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"
#include "runtime/replica/update_log.h"

namespace rumor {

class Snapshots final : public gossip::SnapshotPort {
 public:
  // Takes over a whole state: the owner's own checks, Replica::restore, and all that follows from it.
  using Install = std::function<Result<void>(ReplicaState)>;

  // Refers to replica and log.
  Snapshots(RunForm form, Replica& replica, const UpdateLog& log, Install install);
  ~Snapshots() override;

  // Keeps the snapshot being taken on `disk`, which must outlive this, and goes on with one that is there.
  void open(Disk& disk);

  Result<void> begin_cut(const gossip::HaveSet* names) override;
  bool advance_cut() override;
  std::shared_ptr<const gossip::Cut> cut() const override { return cut_; }
  void drop_cut() override;

  const gossip::Manifest* intake() const override { return intake_ ? &*intake_ : nullptr; }
  Result<void> begin_intake(const gossip::Manifest& manifest) override;
  bool holds_chunk(std::uint32_t number) const override { return held_[number]; }
  Result<void> take_chunk(std::uint32_t number, BytesView packed) override;
  Result<void> install(std::uint64_t period) override;
  void drop_intake() override;

 private:
  struct Making;
  struct IntakeHead {
    std::uint64_t fingerprint = 0, samples = 0;
    std::set<gossip::Revocation> revocations;
  };

  std::size_t copy_piece();
  std::size_t undo_piece();
  std::size_t hash_chunk();
  bool give_up();
  void finish();
  Bytes encode_head(std::uint64_t fingerprint, std::uint64_t samples) const;
  Result<IntakeHead> decode_head(BytesView bytes) const;

  RunForm form_;
  std::uint64_t bytes_;        // of all weights
  std::size_t chunk_weights_;  // of a chunk
  Replica& replica_;
  const UpdateLog& log_;
  Install install_;
  Disk* disk_ = nullptr;

  std::unique_ptr<Making> making_;
  std::shared_ptr<const gossip::Cut> cut_;

  std::optional<gossip::Manifest> intake_;
  IntakeHead intake_head_;
  LargeVector<std::int32_t> weights_;
  std::vector<bool> held_;
};

// The form in which a chunk travels. Errors of unpack: Errc::corrupt unless exactly out.size() weights come
// out.
Bytes pack_chunk(std::span<const std::int32_t> weights);
Result<void> unpack_chunk(BytesView packed, std::span<std::int32_t> out);

}  // namespace rumor
