// TLS 1.3 between two peers, without sockets: ciphertext in, plaintext out, and the other way round.
//
// The handshake alone shows the identity of the other end (RFC 8446, mutual authentication). Each side shows
// exactly one certificate, self-signed with the Ed25519 key inside it; that key is its NodeId. There is no
// chain, no authority and no clock in the check: validity dates are ignored, the self-signature is not.
// Application protocol (ALPN, RFC 7301) is `rumor/1` on both sides. No session tickets, no early data, no
// compression.
//
// A dialler finishes its handshake before the acceptor has checked the dialler's certificate: a finished
// handshake proves the acceptor's key to the dialler, while a refusal by the acceptor arrives as the first
// read's error.
//
// Thread: one owner per session; a TlsContext may be shared by sessions of one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "gossip/asio/identity.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

// OpenSSL's own names for SSL and SSL_CTX.
struct ssl_st;
struct ssl_ctx_st;

namespace rumor::net {

// The settings above and our own certificate, made once.
class TlsContext {
 public:
  explicit TlsContext(const Identity& identity);
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

// One end of one connection. After any error the session is of no further use; output that is still there (an
// alert that tells the other end why) should be sent before the connection closes.
//
// Memory: what has been fed and not read, what has been written and not taken, about 40 KiB of OpenSSL's own.
class TlsSession {
 public:
  enum class Role { dialler, acceptor };

  TlsSession(const TlsContext& context, Role role);
  TlsSession(const TlsSession&) = delete;  // OpenSSL holds a pointer to us for the verify callback
  TlsSession& operator=(const TlsSession&) = delete;

  // Bytes that the socket has given us. Never fails; what they are worth shows in handshake() or read().
  void feed(BytesView ciphertext);

  // Takes the handshake as far as the fed bytes allow; true when it is over and peer() is known. Call it
  // first with nothing fed on the dialler's side: it makes the first flight. Errors: Errc::corrupt,
  // Errc::mismatch.
  Result<bool> handshake();

  // Decrypts into `out`; 0 when all that was fed is read, and for ever when ended(). Requires: handshake()
  // over.
  Result<std::size_t> read(std::span<std::uint8_t> out);

  // Encrypts all of `plaintext`. Requires: handshake() over, end() not called.
  Result<void> write(BytesView plaintext);

  // Says that no more plaintext follows, so that the other end can tell a close from a cut.
  void end();

  // Ciphertext to be sent, made by any of the calls above.
  std::size_t output_bytes() const;
  void take_output(Bytes& out);  // appended

  bool ended() const { return ended_; }
  const NodeId& peer() const { return peer_; }

 private:
  friend struct VerifyPeer;  // the callback, in tls.cc
  Error failure(const std::string& what, int result);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> session_;
  NodeId peer_;
  std::string refusal_;  // why our own check refused the peer's certificate
  bool ended_ = false;
};

}  // namespace rumor::net
