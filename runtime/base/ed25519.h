// Ed25519 (RFC 8032) through OpenSSL's libcrypto, with one rule for valid signatures, so that no two replicas ever
// disagree about an update.
//
// The rule: the key is sound (below), S < L, R is compared as bytes, and the equation is the one without cofactor,
// checked one signature at a time. Implementations are known to differ on exactly these points, and a batch may differ
// from its members ("Taming the many EdDSAs", 2020; ZIP 215). So there are no batches here, and keys on which
// implementations differ are refused before any equation is checked.
//
// Thread: pure functions; SigningKey is immutable and may be shared. No randomness: signing is deterministic, and keys
// come from a seed of the caller. Cost: tests/bench/bench_signatures.cc.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "runtime/base/types.h"

// OpenSSL's own name for EVP_PKEY.
struct evp_pkey_st;

namespace rumor {

// True if this is the canonical encoding (y < p) of a point that is not one of the eight points of small order. A key
// of small order "signs" anything.
bool key_is_sound(const NodeId& key);

// Whether `node` has signed `message`. False for anything malformed.
bool verify(const NodeId& node, BytesView message, const Signature& signature);

class SigningKey {
 public:
  using Seed = std::array<std::uint8_t, 32>;  // the private key, as RFC 8032 calls it

  explicit SigningKey(const Seed& seed);
  // Borrows an Ed25519 key that OpenSSL has loaded. Requires: it is one.
  explicit SigningKey(std::shared_ptr<evp_pkey_st> key);

  const NodeId& id() const { return id_; }
  Signature sign(BytesView message) const;

 private:
  std::shared_ptr<evp_pkey_st> key_;
  NodeId id_;
};

}  // namespace rumor
