// Identity: who a peer is. An Ed25519 key pair, and the self-signed certificate in which TLS carries its
// public half.
//
// The NodeId *is* the public key (RFC 8032, 32 bytes): there is no authority, no name and no expiry. The
// certificate is an envelope made in memory from the key, the same one every time: its dates span all of time
// and nobody reads them. Only the private key is kept on disk, as PKCS#8 PEM, which `openssl pkey -in FILE
// -text` can show.
//
// Losing the key file means becoming a new peer; copying it means two processes that claim to be one (the
// state directory's lock guards against that on one machine).
//
// Thread: immutable after creation; copies share the key, and any thread may use any copy.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "gossip/trust/signing.h"
#include "runtime/base/ed25519.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

// OpenSSL's own names for EVP_PKEY and X509, so that this header needs none of its headers.
struct evp_pkey_st;
struct x509_st;

namespace rumor::net {

class Identity {
 public:
  // Reads the key at `path`, or makes one there when there is none: complete or not at all, readable by its
  // owner alone (mode 0600), and never replacing a key that another process has put there meanwhile. Errors:
  // Errc::io (cannot read or write; or others may read the file: chmod 600 fixes it), Errc::corrupt (not an
  // Ed25519 key).
  static Result<Identity> load_or_create(const std::string& path);

  // Only reads: Errc::not_found when there is no file.
  static Result<Identity> load(const std::string& path);

  // A key that lives as long as its copies.
  static Identity ephemeral();

  NodeId id() const { return signing_.id(); }

  // Ed25519 over `message`; deterministic. Check with verify(id(), ...).
  Signature sign(BytesView message) const { return signing_.sign(message); }

  const SigningKey& signing_key() const { return signing_; }

  // For TlsContext; borrowed.
  evp_pkey_st* key() const { return key_.get(); }
  x509_st* certificate() const { return certificate_.get(); }

 private:
  explicit Identity(std::shared_ptr<evp_pkey_st> key);

  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  SigningKey signing_;
};

// The protocol signs and verifies with these keys over real networks.
class IdentityKeys final : public gossip::Keys {
 public:
  explicit IdentityKeys(Identity identity) : identity_(std::move(identity)) {}
  Signature sign(BytesView message) const override { return identity_.sign(message); }
  bool verify(const NodeId& node, BytesView message, const Signature& signature) const override {
    return rumor::verify(node, message, signature);
  }

 private:
  Identity identity_;
};

}  // namespace rumor::net
