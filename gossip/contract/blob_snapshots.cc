#include "gossip/contract/blob_snapshots.h"

#include <algorithm>

namespace rumor::gossip {

namespace {

class BlobCut final : public Cut {
 public:
  BlobCut(Bytes state, HaveSet names) : state_(std::move(state)) {
    manifest_.bytes = state_.size();
    manifest_.names = std::move(names);
    for (BytesView left = state_; !left.empty();) {
      const BytesView first = left.first(std::min(left.size(), chunk_bytes_of(state_.size())));
      manifest_.chunks.push_back(sha256(first));
      left = left.subspan(first.size());
    }
    encoded_ = manifest_.encode();
    hash_ = sha256(encoded_);
  }

  const Manifest& manifest() const override { return manifest_; }
  const Bytes& encoded_manifest() const override { return encoded_; }
  const Hash256& hash() const override { return hash_; }
  Bytes chunk(std::uint32_t number) const override {
    const std::size_t chunk_bytes = chunk_bytes_of(state_.size()), first = number * chunk_bytes;
    const BytesView bytes = BytesView(state_).subspan(first, std::min(chunk_bytes, state_.size() - first));
    return {bytes.begin(), bytes.end()};
  }
  std::uint64_t period() const override { return 0; }

 private:
  Bytes state_;
  Manifest manifest_;
  Bytes encoded_;
  Hash256 hash_;
};

}  // namespace

Result<void> BlobSnapshots::begin_cut(const HaveSet* names) {
  Result<Bytes> state = write_(names);
  if (!state) return state.error();
  cut_ = std::make_shared<const BlobCut>(std::move(state).value(), names != nullptr ? *names : names_());
  return {};
}

Result<void> BlobSnapshots::begin_intake(const Manifest& manifest) {
  if (!manifest.head.empty()) return Error{Errc::mismatch, "it is of another kind of store"};
  intake_ = manifest;
  chunks_.assign(manifest.chunks.size(), {});
  return {};
}

Result<void> BlobSnapshots::take_chunk(std::uint32_t number, BytesView packed) {
  if (packed.empty() || sha256(packed) != intake_->chunks[number])
    return Error{Errc::corrupt, "a chunk does not have the hash of its manifest"};
  chunks_[number].assign(packed.begin(), packed.end());
  return {};
}

Result<void> BlobSnapshots::install(std::uint64_t /*period*/) {
  Bytes state;
  for (const Bytes& chunk : chunks_) state.insert(state.end(), chunk.begin(), chunk.end());
  intake_.reset();
  return read_(state);
}

}  // namespace rumor::gossip
