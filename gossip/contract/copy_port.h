// CopyPort: the store, as the protocol needs it where peers have models of their own (PROTOCOL.md 6.14). It gives the
// own public copy as bytes, and holds those of neighbours.
//
// Implemented by runtime/exchange/neighbourhood.h. Thread: one owner, as Protocol.
#pragma once

#include <memory>
#include <optional>

#include "gossip/contract/update_store.h"

namespace rumor::gossip {

class CopyPort {
 public:
  virtual ~CopyPort() = default;

  // ---- giving ----
  // The own public copy as it is now; opaque. As slow as reading and hashing all weights.
  virtual std::shared_ptr<const Bytes> own_copy() const = 0;
  // The most bytes that a whole copy may have.
  virtual std::size_t copy_bytes_max() const = 0;

  // ---- holding; `node` is a neighbour ----
  // The newest update of this stream in its copy, which is held from an earlier link. Nothing when no copy is held, or
  // when it lacks updates from before that stream.
  virtual std::optional<std::uint64_t> held(const NodeId& node, const StreamId& stream) const = 0;
  // The node has made no update yet: holds the run's initial weights as its copy.
  virtual void hold_initial(const NodeId& node) = 0;
  // Replaces the copy that was held of it. Errors: Errc::corrupt, Errc::mismatch; nothing changed then.
  virtual Result<void> take_copy(const NodeId& node, BytesView copy) = 0;
  // Applies an update to its copy, which is held, unless the copy has it. Errors: Errc::corrupt; nothing changed then.
  // Requires: header.origin is the node, its payload_hash was computed from this payload and its signature was
  // found good.
  virtual Result<void> take_update(const StoredUpdate& update) = 0;
  // The own public copy, and the model, become the copy that is held of this node, so that a newcomer goes on from
  // there. Requires: the copy is held, and the own copy has no update yet.
  virtual void begin_with(const NodeId& node) = 0;
  // The digest of the copy that is held.
  virtual std::optional<ReplicaDigest> digest_of(const NodeId& node) const = 0;
  // Whether the held copy counts: a link keeps it as new as it can be from now on, or no link does.
  virtual void set_linked(const NodeId& node, bool linked, TimePoint now) = 0;
};

}  // namespace rumor::gossip
