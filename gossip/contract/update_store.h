// UpdateStore: the replica, as the protocol sees and changes it.
//
// Implemented by runtime/node. The protocol carries opaque payloads; the store decides whether one is valid and what it
// changes. Calls are synchronous, pure computation, and never call back into the protocol.
#pragma once

#include <memory>
#include <optional>
#include <set>

#include "gossip/contract/have_set.h"
#include "gossip/contract/link_coder.h"
#include "gossip/contract/revocation.h"
#include "gossip/contract/snapshot_port.h"
#include "runtime/base/result.h"
#include "runtime/base/sha256.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// The header of every payload: decided by its origin, never changed on the way.
struct UpdateHeader {
  UpdateKey key;
  NodeId origin;
  Hash256 payload_hash;           // SHA-256 of the canonical payload; never sent: the receiver computes it
  std::uint64_t fingerprint = 0;  // linear fingerprint of this update's change (runtime/replica/fingerprint.h)
  std::uint64_t period = 0;       // logical training period of the origin (runtime/exchange/in_flight_view.h)
  std::uint32_t samples = 0;      // training samples behind this update
  Signature signature{};          // the origin's, over all of the above (gossip/trust/signing.h)
};

struct StoredUpdate {
  UpdateHeader header;
  std::shared_ptr<const Bytes> payload;  // shared: one copy serves every link
};

// Equal have-sets and different fingerprints: the replicas have diverged.
struct ReplicaDigest {
  Hash256 have_hash;
  std::uint64_t fingerprint = 0;
  std::uint64_t updates = 0;
  bool operator==(const ReplicaDigest&) const = default;
};

enum class Accepted : std::uint8_t { applied, duplicate };

class UpdateStore {
 public:
  virtual ~UpdateStore() = default;

  virtual const HaveSet& have() const = 0;
  virtual ReplicaDigest digest() const = 0;
  // The initial weights are not those of the run, and no snapshot has replaced them yet. digest() is then that of no
  // replica.
  virtual bool lacks_weights() const { return false; }

  // An update we can still serve, or nothing (never seen, or trimmed from the log).
  virtual std::optional<StoredUpdate> find(const UpdateKey& key) const = 0;
  // Whether find() would have it, without reading it.
  virtual bool keeps(const UpdateKey& key) const { return find(key).has_value(); }
  // The payload_hash that a header must have. A simulation with random payloads may give something cheaper.
  virtual Hash256 hash_of(const Bytes& payload) const { return sha256(payload); }
  // Verifies the update, and applies, marks and logs it if it was lacking, in one turn. Errc::corrupt when the update
  // is invalid; nothing changed then. Requires: payload_hash was computed from this payload and the signature was found
  // good.
  virtual Result<Accepted> accept(const StoredUpdate& update) = 0;

  // In the order of operator<=>, none twice.
  virtual const std::set<Revocation>& revocations() const = 0;
  // Takes the covered updates back: erases the names from have() and subtracts exactly what each had added; later
  // accept() answers `duplicate` for all of it. Nothing changes when the log no longer has one of them:
  // Errc::limit, with their number. Requires: not in revocations(), nor needless beside them; its
  // signature or its proof was found good.
  virtual Result<void> revoke(const Revocation& revocation) = 0;

  // Whether the weights have the fingerprint that the updates give them. May be as slow as reading all weights.
  virtual bool verify() const = 0;
  // Takes one applied update back. Errors: Errc::limit when the log no longer has it.
  virtual Result<void> take_back(const UpdateKey& key) = 0;

  // The coder of a new link. Not null.
  virtual std::unique_ptr<LinkCoder> coder_for_link() const = 0;

  // Gives the replica to joiners, and takes another's.
  virtual SnapshotPort& snapshots() = 0;

  // Every known member holds these updates, as it said: the log may drop them (PROTOCOL.md 6.13).
  virtual void acknowledged(const HaveSet& /*by_all*/, TimePoint /*now*/) {}
};

}  // namespace rumor::gossip
