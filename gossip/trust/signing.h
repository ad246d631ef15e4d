// Signing: the messages that are signed, byte for byte, and the keys that sign them (PROTOCOL.md 6.8).
//
// A node signs everything about itself that others pass on: its record, its streams, its updates. Each message begins
// with a name of its own and the run, so that no signature is of use elsewhere. The protocol neither holds a private
// key nor knows a curve: it asks Keys.
//
// Thread: pure functions; Keys as its implementation says.
#pragma once

#include "gossip/contract/stream_name.h"
#include "gossip/contract/update_store.h"
#include "gossip/wire/wire.h"

namespace rumor::gossip {

// Our private key and the rule by which signatures are judged. The daemon's is Ed25519
// (gossip/asio/identity.h); a simulation may use a keyed tag, which costs a hundredth and protects against
// nobody.
class Keys {
 public:
  virtual ~Keys() = default;
  virtual Signature sign(BytesView message) const = 0;
  // A pure function of its arguments, equal on all nodes of a run.
  virtual bool verify(const NodeId& node, BytesView message, const Signature& signature) const = 0;
};

// ---- messages ----

// The header without its signature; the payload is bound by its hash.
Bytes update_message(const RunId& run, const UpdateHeader& header);
// SHA-256 of that: two of them under one key are two updates.
Hash256 header_hash(const RunId& run, const UpdateHeader& header);
// The record without its signature.
Bytes record_message(const RunId& run, const PeerRecord& record);

// The revocation without its signature. Requires: it is signed, by the owner or by its node.
Bytes revoke_message(const RunId& run, const Revocation& revocation);

// The buffers without their signature.
Bytes buffers_message(const RunId& run, const Buffers& buffers);

// Whether origin, stream and signature of a header fit together. Requires: header.payload_hash was computed
// from the payload that came with it.
bool update_is_signed(const Keys& keys, const RunId& run, const UpdateHeader& header);
bool record_is_signed(const Keys& keys, const RunId& run, const PeerRecord& record);
// Whether a revocation has the signature that its kind asks for: a proven one has none, and is judged by its proof.
bool revocation_is_signed(const Keys& keys, const RunId& run, const std::optional<NodeId>& owner,
                          const Revocation& revocation);

}  // namespace rumor::gossip
