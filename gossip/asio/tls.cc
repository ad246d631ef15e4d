#include "gossip/asio/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <climits>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::net {

// Replaces OpenSSL's chain building: one certificate, Ed25519, signed by itself. Called during the handshake.
struct VerifyPeer {
  static int callback(X509_STORE_CTX* store, void*) {
    const int index = SSL_get_ex_data_X509_STORE_CTX_idx();
    SSL* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, index));
    auto* session = static_cast<TlsSession*>(SSL_get_app_data(ssl));
    session->refusal_ =
        check(*session, X509_STORE_CTX_get0_cert(store), X509_STORE_CTX_get0_untrusted(store));
    X509_STORE_CTX_set_error(store, session->refusal_.empty() ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return session->refusal_.empty() ? 1 : 0;
  }

  // Empty when the certificate is good; the peer's id is noted.
  static std::string check(TlsSession& session, X509* certificate, STACK_OF(X509) * shown) {
    if (certificate == nullptr) return "the peer showed no certificate";
    if (sk_X509_num(shown) != 1) return "the peer showed more than one certificate";
    EVP_PKEY* key = X509_get0_pubkey(certificate);
    if (key == nullptr || EVP_PKEY_base_id(key) != EVP_PKEY_ED25519) return "the peer's key is not Ed25519";
    if (X509_verify(certificate, key) != 1) return "the peer's certificate is not signed by its own key";
    std::size_t size = NodeId::size;
    if (EVP_PKEY_get_raw_public_key(key, session.peer_.bytes.data(), &size) != 1 || size != NodeId::size)
      return "the peer's key cannot be read";
    if (!key_is_sound(session.peer_)) return "the peer's key is of small order: anybody's";
    return {};
  }
};

namespace {

constexpr unsigned char protocol_list[] = {7, 'r', 'u', 'm', 'o', 'r', '/', '1'};  // as ALPN writes lists
constexpr long certificate_bytes_max = 4096;

int select_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* match = nullptr;
  const int found =
      SSL_select_next_proto(&match, chosen_size, protocol_list, sizeof protocol_list, offered, offered_size);
  *chosen = match;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool protocol_agreed(SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &name, &size);
  return size == protocol_list[0] && std::equal(name, name + size, protocol_list + 1);
}

}  // namespace

TlsContext::TlsContext(const Identity& identity) : context_(SSL_CTX_new(TLS_method()), &SSL_CTX_free) {
  SSL_CTX* context = context_.get();
  RUMOR_CHECK(context != nullptr);
  RUMOR_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  RUMOR_CHECK(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1);
  RUMOR_CHECK(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1);
  RUMOR_CHECK(SSL_CTX_set1_sigalgs_list(context, "ed25519") == 1);
  RUMOR_CHECK(SSL_CTX_use_certificate(context, identity.certificate()) == 1);
  RUMOR_CHECK(SSL_CTX_use_PrivateKey(context, identity.key()) == 1);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  RUMOR_CHECK(SSL_CTX_set_num_tickets(context, 0) == 1);
  SSL_CTX_set_max_cert_list(context, certificate_bytes_max);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, &VerifyPeer::callback, nullptr);
  RUMOR_CHECK(SSL_CTX_set_alpn_protos(context, protocol_list, sizeof protocol_list) == 0);
  SSL_CTX_set_alpn_select_cb(context, &select_protocol, nullptr);
}

TlsSession::TlsSession(const TlsContext& context, Role role) : session_(SSL_new(context.get()), &SSL_free) {
  BIO* input = BIO_new(BIO_s_mem());
  BIO* output = BIO_new(BIO_s_mem());
  RUMOR_CHECK(session_ && input != nullptr && output != nullptr);
  SSL_set_bio(session_.get(), input, output);  // owned by the session from here
  SSL_set_app_data(session_.get(), this);
  role == Role::dialler ? SSL_set_connect_state(session_.get()) : SSL_set_accept_state(session_.get());
}

void TlsSession::feed(BytesView ciphertext) {
  if (ciphertext.empty()) return;
  RUMOR_CHECK(ciphertext.size() <= INT_MAX);
  const int size = static_cast<int>(ciphertext.size());
  RUMOR_CHECK(BIO_write(SSL_get_rbio(session_.get()), ciphertext.data(), size) == size);
}

// The reason of a failed call, as one line. Our own refusal says more than OpenSSL's "certificate verify
// failed".
Error TlsSession::failure(const std::string& what, int result) {
  const int kind = SSL_get_error(session_.get(), result);
  const unsigned long number = ERR_peek_last_error();
  ERR_clear_error();
  if (!refusal_.empty()) return {Errc::mismatch, str(what, ": ", refusal_)};
  const char* reason = number == 0 ? nullptr : ERR_reason_error_string(number);
  return {Errc::corrupt, str(what, ": ", reason == nullptr ? str("error ", kind) : std::string(reason))};
}

Result<bool> TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  if (result != 1) {
    if (SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ) return false;
    return failure("TLS handshake failed", result);
  }
  if (!protocol_agreed(session_.get()))
    return Error{Errc::mismatch, "TLS handshake failed: the other end does not speak rumor/1"};
  return true;
}

Result<std::size_t> TlsSession::read(std::span<std::uint8_t> out) {
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(session_.get(), out.data(), out.size(), &got);
  if (result == 1) return got;
  const int kind = SSL_get_error(session_.get(), result);
  if (kind == SSL_ERROR_ZERO_RETURN) ended_ = true;
  if (kind == SSL_ERROR_WANT_READ || ended_) return std::size_t{0};
  return failure("TLS failed", result);
}

Result<void> TlsSession::write(BytesView plaintext) {
  if (plaintext.empty()) return {};
  ERR_clear_error();
  std::size_t done = 0;
  const int result = SSL_write_ex(session_.get(), plaintext.data(), plaintext.size(), &done);
  if (result == 1 && done == plaintext.size()) return {};
  return failure("TLS failed", result);
}

void TlsSession::end() {
  ERR_clear_error();
  SSL_shutdown(session_.get());
  ERR_clear_error();
}

std::size_t TlsSession::output_bytes() const {
  return BIO_ctrl_pending(SSL_get_wbio(session_.get()));
}

void TlsSession::take_output(Bytes& out) {
  const std::size_t pending = output_bytes();
  if (pending == 0) return;
  RUMOR_CHECK(pending <= INT_MAX);
  const std::size_t before = out.size();
  out.resize(before + pending);
  const int size = static_cast<int>(pending);
  RUMOR_CHECK(BIO_read(SSL_get_wbio(session_.get()), out.data() + before, size) == size);
}

}  // namespace rumor::net
