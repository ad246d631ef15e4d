// SnapshotPort: what the protocol needs of the store in order to give its replica to a joiner and to take
// another's (PROTOCOL.md 6.7).
//
// A *cut* is the replica as it is with exactly one set of updates. Sums can be taken back, so every replica
// that holds those updates and has the later ones in its log can make the same cut, bit for bit. Its manifest
// names it: the set, what the store says of it, and the SHA-256 of each chunk. So chunks of one cut may come
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

// How large each chunk but the last is, as it is hashed, when all of them have `bytes`: a 64th, as a power of
// two from 512 to limits::snapshot_chunk_bytes. So what is lost with a donor is little for small models too.
constexpr std::size_t chunk_bytes_of(std::uint64_t bytes) {
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(std::bit_ceil(bytes / 64 + 1), 512, limits::snapshot_chunk_bytes));
}

struct Manifest {
  std::uint64_t bytes = 0;  // of all chunks as they are hashed
  Bytes head;               // of the store: opaque here. Equal cuts, equal bytes
  HaveSet names;
  std::vector<Hash256> chunks;
  bool operator==(const Manifest&) const = default;

  // The form that is hashed and travels: bytes u64, head sized, have-set, hashes.
  Bytes encode() const;
  // Errors: Errc::corrupt for anything that encode() would not have written, Errc::limit beyond limits.h.
  static Result<Manifest> decode(BytesView bytes);
};

// Immutable. Shared by all who download it.
class Cut {
 public:
  virtual ~Cut() = default;
  virtual const Manifest& manifest() const = 0;
  virtual const Bytes& encoded_manifest() const = 0;
  virtual const Hash256& hash() const = 0;  // of that
  // As it travels. Requires: number < manifest().chunks.size().
  virtual Bytes chunk(std::uint32_t number) const = 0;
  // Of the newest update in it, about: not part of the cut, since it cannot be taken back.
  virtual std::uint64_t period() const = 0;
};

class SnapshotPort {
 public:
  virtual ~SnapshotPort() = default;

  // ---- giving ----
  // Begins to make the cut of exactly `names`, or of all that is held now when null. A cut under way or made
  // before is given up. Errors: Errc::limit when it cannot be made (any more), or would cost too much.
  virtual Result<void> begin_cut(const HaveSet* names) = 0;
  // A few milliseconds of work. True: it is over; cut() has it, or is null when it could not be made.
  virtual bool advance_cut() = 0;
  virtual std::shared_ptr<const Cut> cut() const = 0;
  virtual void drop_cut() = 0;

  // ---- taking ----
  // What is being fetched; also what an earlier process had begun. Null: nothing.
  virtual const Manifest* intake() const = 0;
  // Errors: Errc::mismatch (of another run or model), Errc::corrupt.
  virtual Result<void> begin_intake(const Manifest& manifest) = 0;
  // Requires, of both: intake() and number < intake()->chunks.size().
  virtual bool holds_chunk(std::uint32_t number) const = 0;
  // Errors: Errc::corrupt when these bytes are not that chunk.
  virtual Result<void> take_chunk(std::uint32_t number, BytesView packed) = 0;
  // Replaces the replica by the cut, then applies the logged updates that it lacks. What was fetched is gone
  // afterwards, whatever comes of it. Errors: Errc::corrupt, Errc::mismatch; the replica is as it was.
  // Requires: all chunks are held.
  virtual Result<void> install(std::uint64_t period) = 0;
  virtual void drop_intake() = 0;
};

}  // namespace rumor::gossip
