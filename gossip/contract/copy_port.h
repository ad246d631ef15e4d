// CopyPort: what the protocol needs of the store where peers have models of their own (PROTOCOL.md 6.14): its own
// public copy as bytes, and to hold those of its neighbours.
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
  // Of a whole copy, no more than this.
  virtual std::size_t copy_bytes_max() const = 0;

  // ---- holding; `node` is a neighbour ----
  // As of which update of this stream its copy is held, from an earlier link; nothing where it is not held, or lacks
  // what came before that stream.
  virtual std::optional<std::uint64_t> held(const NodeId& node, const StreamId& stream) const = 0;
  // It has made no update yet: its copy is the run's initial weights.
  virtual void hold_initial(const NodeId& node) = 0;
  // Instead of what was held of it. Errors: Errc::corrupt, Errc::mismatch; nothing changed then.
  virtual Result<void> take_copy(const NodeId& node, BytesView copy) = 0;
  // Moves its copy, which is held, unless it has that update. Errors: Errc::corrupt; nothing changed then.
  // Requires: header.origin is the node, its payload_hash was computed from this payload and its signature was
  // found good.
  virtual Result<void> take_update(const StoredUpdate& update) = 0;
  // The own public copy, and model, become what is held of this node: who begins goes on from there. Requires: it is
  // held, and the own copy has no update yet.
  virtual void begin_with(const NodeId& node) = 0;
  // Of what is held.
  virtual std::optional<ReplicaDigest> digest_of(const NodeId& node) const = 0;
  // Whether what is held counts: from now on a link keeps it as new as it may be, or none does.
  virtual void set_linked(const NodeId& node, bool linked, TimePoint now) = 0;
};

}  // namespace rumor::gossip
