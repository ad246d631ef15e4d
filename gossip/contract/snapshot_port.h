// SnapshotPort: the store, as the protocol needs it to give its replica to a joiner and to take another's
// (PROTOCOL.md 6.7).
//
// A *cut* is the replica as it is with exactly one set of updates. Sums can be taken back, so every replica
// that holds those updates and has the later ones in its log can make the same cut, bit for bit. Its manifest
// names it: the set, the store's own head, and the SHA-256 of each chunk. Chunks of one cut may therefore come
// from any number of donors, and from donors that did not exist when the first chunk was fetched.
//
// Implemented by runtime/replica/snapshots.h. Thread: one owner, as Protocol. Nothing here may take longer than a few
// milliseconds at a time but install().
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/contract/have_set.h"
#include "runtime/base/limits.h"
#include "runtime/base/result.h"
#include "runtime/base/sha256.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// The size of each chunk but the last, as it is hashed, when all of them have `bytes`: a 64th, as a power of two from
// 512 to limits::snapshot_chunk_bytes. A lost donor therefore costs little, for small models too.
constexpr std::size_t chunk_bytes_of(std::uint64_t bytes) {
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(std::bit_ceil(bytes / 64 + 1), 512, limits::snapshot_chunk_bytes));
}

struct Manifest {
  std::uint64_t bytes = 0;  // of all chunks as they are hashed
  Bytes head;               // the store's: opaque here. Equal cuts have equal heads
  HaveSet names;
  std::vector<Hash256> chunks;
  bool operator==(const Manifest&) const = default;

  // The form that is hashed and travels: bytes u64, head sized, have-set, hashes.
  Bytes encode() const;
  // Errors: Errc::corrupt for anything that encode() would not have written, Errc::limit beyond limits.h.
  static Result<Manifest> decode(BytesView bytes);
};

// Immutable; all joiners share it.
class Cut {
 public:
  virtual ~Cut() = default;
  virtual const Manifest& manifest() const = 0;
  virtual const Bytes& encoded_manifest() const = 0;
  virtual const Hash256& hash() const = 0;  // of the encoded manifest
  // Returns a chunk as it travels. Requires: number < manifest().chunks.size().
  virtual Bytes chunk(std::uint32_t number) const = 0;
  // The period of about the newest update in it. Not part of the cut, since a period cannot be taken back.
  virtual std::uint64_t period() const = 0;
};

class SnapshotPort {
 public:
  virtual ~SnapshotPort() = default;

  // ---- giving ----
  // Begins to make the cut of exactly `names`, or of all updates held now when null. Drops a cut that is under way or
  // was made before. Errors: Errc::limit when it cannot be made (any more), or would cost too much.
  virtual Result<void> begin_cut(const HaveSet* names) = 0;
  // Works for a few milliseconds. True: it is done; cut() has the cut, or is null when it could not be made.
  virtual bool advance_cut() = 0;
  virtual std::shared_ptr<const Cut> cut() const = 0;
  virtual void drop_cut() = 0;

  // ---- taking ----
  // The cut that is being fetched, perhaps since an earlier process. Null: none.
  virtual const Manifest* intake() const = 0;
  // Errors: Errc::mismatch (of another run or model), Errc::corrupt.
  virtual Result<void> begin_intake(const Manifest& manifest) = 0;
  // Requires, of both: intake() and number < intake()->chunks.size().
  virtual bool holds_chunk(std::uint32_t number) const = 0;
  // Errors: Errc::corrupt when these bytes are not that chunk.
  virtual Result<void> take_chunk(std::uint32_t number, BytesView packed) = 0;
  // Replaces the replica by the cut, then applies the logged updates that it lacks. Drops the fetched chunks, also
  // after an error. Errors: Errc::corrupt, Errc::mismatch; the replica is as it was. Requires: all chunks are held.
  virtual Result<void> install(std::uint64_t period) = 0;
  virtual void drop_intake() = 0;
};

}  // namespace rumor::gossip
