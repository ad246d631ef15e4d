// BlobSnapshots: a SnapshotPort for a store that can write its whole state, a few bytes, at once: stores without
// weights, in simulations and tests. Nothing is packed, and nothing is kept on disk.
//
// Thread: one owner, as Protocol.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "gossip/contract/snapshot_port.h"

namespace rumor::gossip {

class BlobSnapshots final : public SnapshotPort {
 public:
  // Returns the state with exactly these names (null: as it is). Errors: Errc::limit.
  using Write = std::function<Result<Bytes>(const HaveSet* names)>;
  using Read = std::function<Result<void>(BytesView state)>;
  using Names = std::function<const HaveSet&()>;

  BlobSnapshots(Write write, Read read, Names names)
      : write_(std::move(write)), read_(std::move(read)), names_(std::move(names)) {}

  Result<void> begin_cut(const HaveSet* names) override;
  bool advance_cut() override { return true; }
  std::shared_ptr<const Cut> cut() const override { return cut_; }
  void drop_cut() override { cut_.reset(); }

  const Manifest* intake() const override { return intake_ ? &*intake_ : nullptr; }
  Result<void> begin_intake(const Manifest& manifest) override;
  bool holds_chunk(std::uint32_t number) const override { return !chunks_[number].empty(); }
  Result<void> take_chunk(std::uint32_t number, BytesView packed) override;
  Result<void> install(std::uint64_t period) override;
  void drop_intake() override { intake_.reset(); }

 private:
  Write write_;
  Read read_;
  Names names_;
  std::shared_ptr<const Cut> cut_;
  std::optional<Manifest> intake_;
  std::vector<Bytes> chunks_;
};

}  // namespace rumor::gossip
