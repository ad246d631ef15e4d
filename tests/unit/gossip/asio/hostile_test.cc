// Tests how the transport handles remote ends that are absent, wrong or hostile. Peers here speak through plain
// OpenSSL or a bare socket, not through Transport.
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>

#include "gossip/asio/tls.h"
#include "runtime/base/limits.h"
#include "tests/unit/contains.h"
#include "tests/unit/gossip/asio/harness.h"

namespace rumor::net::test {
namespace {

using rumor::test::contains;

using asio::ip::tcp;

struct Settings {
  int version = TLS1_3_VERSION;
  std::string protocol = "rumor/1";
  enum class Shown { own, none, two, other_key_signed, not_ed25519 } shown = Shown::own;
};

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Key p256_key() {
  std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr), &EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  BOOST_REQUIRE(EVP_PKEY_keygen_init(context.get()) == 1);
  BOOST_REQUIRE(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1) == 1);
  BOOST_REQUIRE(EVP_PKEY_keygen(context.get(), &key) == 1);
  return {key, &EVP_PKEY_free};
}

void show(SSL_CTX* context, EVP_PKEY* key, EVP_PKEY* signer, const EVP_MD* digest) {
  std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  BOOST_REQUIRE(X509_sign(certificate.get(), signer, digest) > 0);
  BOOST_REQUIRE(SSL_CTX_use_certificate(context, certificate.get()) == 1);
  BOOST_REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
}

// A TLS client that may misbehave, on blocking calls through memory buffers like the real one's.
class Client {
 public:
  Client(Loop& loop, const std::string& address, const Settings& settings)
      : loop_(loop),
        socket_(loop.io),
        context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
        ssl_(nullptr, &SSL_free) {
    set_up(settings);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    socket_.non_blocking(true);
  }

  // Runs the handshake as far as it goes while the other end's loop runs too.
  bool handshake() {
    return loop_.until([&] {
      const int result = SSL_do_handshake(ssl_.get());
      exchange();
      return result == 1 || closed_;
    }) && SSL_is_init_finished(ssl_.get()) == 1;
  }
  void write(const Bytes& plaintext) {
    SSL_write(ssl_.get(), plaintext.data(), static_cast<int>(plaintext.size()));
    exchange();
  }
  void ask_for_key_updates(int count) {
    for (int i = 0; i < count; ++i) {
      SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
      SSL_do_handshake(ssl_.get());
    }
    Bytes output(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())));
    BIO_read(SSL_get_wbio(ssl_.get()), output.data(), static_cast<int>(output.size()));
    asio::error_code error;
    socket_.non_blocking(false);
    asio::write(socket_, asio::buffer(output), error);
  }
  NodeId id() const { return identity_.id(); }

 private:
  void set_up(const Settings& settings) {
    SSL_CTX* context = context_.get();
    SSL_CTX_set_min_proto_version(context, settings.version);
    SSL_CTX_set_max_proto_version(context, settings.version);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    Bytes list{static_cast<std::uint8_t>(settings.protocol.size())};
    list.insert(list.end(), settings.protocol.begin(), settings.protocol.end());
    if (!settings.protocol.empty())
      SSL_CTX_set_alpn_protos(context, list.data(), static_cast<unsigned>(list.size()));
    const Identity other = Identity::ephemeral();
    switch (settings.shown) {
      case Settings::Shown::none:
        break;
      case Settings::Shown::two:
        show(context, identity_.key(), identity_.key(), nullptr);
        BOOST_REQUIRE(SSL_CTX_add1_chain_cert(context, other.certificate()) == 1);
        break;
      case Settings::Shown::own:
        show(context, identity_.key(), identity_.key(), nullptr);
        break;
      case Settings::Shown::other_key_signed:
        show(context, identity_.key(), other.key(), nullptr);
        break;
      case Settings::Shown::not_ed25519: {
        const Key key = p256_key();
        show(context, key.get(), key.get(), EVP_sha256());
        break;
      }
    }
  }

  void exchange() {
    asio::error_code error;
    Bytes output(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())));
    if (!output.empty()) {
      BIO_read(SSL_get_wbio(ssl_.get()), output.data(), static_cast<int>(output.size()));
      asio::write(socket_, asio::buffer(output), error);
      if (error) closed_ = true;
    }
    Bytes input(65'536);
    const std::size_t got = socket_.read_some(asio::buffer(input), error);
    if (error && error != asio::error::would_block) closed_ = true;
    if (got > 0) BIO_write(SSL_get_rbio(ssl_.get()), input.data(), static_cast<int>(got));
  }

  Loop& loop_;
  tcp::socket socket_;
  Identity identity_ = Identity::ephemeral();
  Context context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool closed_ = false;
};

struct Target {
  Loop loop;
  End end{loop};
  std::string address = end.listen();

  // The reason why a client of these settings did not become a link.
  std::string refusal(const Settings& settings) {
    Client client(loop, address, settings);
    client.handshake();
    loop.until([&] { return !end.refusals.empty() || !end.ups.empty(); });
    return end.refusals.empty() ? "not refused" : end.refusals.back();
  }
  tcp::socket plain_socket() {
    tcp::socket socket(loop.io);
    socket.connect({asio::ip::make_address("127.0.0.1"),
                    static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)))});
    return socket;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile)

BOOST_AUTO_TEST_CASE(a_well_behaved_stranger_is_let_in) {
  Target target;
  Client client(target.loop, target.address, {});
  BOOST_REQUIRE(client.handshake());
  BOOST_REQUIRE(target.loop.until([&] { return target.end.ups.size() == 1; }));
  BOOST_TEST((target.end.ups[0].peer == client.id()));
  client.write({3, 0, 0, 0, 'a', 'b', 'c'});
  BOOST_REQUIRE(target.loop.until([&] { return target.end.frame_count == 1; }));
  BOOST_TEST((target.end.frames[0] == Bytes{'a', 'b', 'c'}));
}

BOOST_AUTO_TEST_CASE(certificates_must_be_one_and_of_their_own_key) {
  using Shown = Settings::Shown;
  const auto refusal = [](Shown shown) {
    Settings settings;
    settings.shown = shown;
    return Target().refusal(settings);
  };
  BOOST_TEST(contains(refusal(Shown::none), "peer did not return a certificate"));
  BOOST_TEST(contains(refusal(Shown::two), "more than one certificate"));
  BOOST_TEST(contains(refusal(Shown::other_key_signed), "not signed by its own key"));
  BOOST_TEST(refusal(Shown::not_ed25519).starts_with("TLS handshake failed"));
}

BOOST_AUTO_TEST_CASE(version_and_protocol_must_match) {
  Settings older;
  older.version = TLS1_2_VERSION;
  BOOST_TEST(Target().refusal(older).starts_with("TLS handshake failed"));
  Settings web;
  web.protocol = "h2";
  BOOST_TEST(Target().refusal(web).starts_with("TLS handshake failed"));
  Settings silent;
  silent.protocol = "";
  BOOST_TEST(contains(Target().refusal(silent), "does not speak rumor/1"));
}

BOOST_AUTO_TEST_CASE(garbage_instead_of_tls_is_dropped) {
  Target target;
  for (const std::string text : {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff garbage", "\n"}) {
    const std::size_t before = target.end.refusals.size();
    tcp::socket socket = target.plain_socket();
    asio::write(socket, asio::buffer(text));
    socket.shutdown(tcp::socket::shutdown_send);
    BOOST_REQUIRE(target.loop.until([&] { return target.end.refusals.size() == before + 1; }));
    BOOST_TEST(target.end.refusals.back().starts_with("TLS handshake failed: "));
  }
  BOOST_TEST(target.end.ups.empty());
}

BOOST_AUTO_TEST_CASE(wrong_lengths_close_the_link) {
  const auto outcome = [](const Bytes& plaintext) {
    Target target;
    Client client(target.loop, target.address, {});
    BOOST_REQUIRE(client.handshake());
    client.write(plaintext);
    BOOST_REQUIRE(target.loop.until([&] { return !target.end.downs.empty(); }));
    BOOST_TEST(target.end.frame_count == 0u);
    return target.end.downs.begin()->second.front();
  };
  BOOST_TEST(outcome({0, 0, 0, 0, 1}) == "a frame of no bytes arrived");
  BOOST_TEST(contains(outcome({1, 0, 16, 0}), "1048577 bytes was announced, beyond the limit of 1048576"));
  BOOST_TEST(contains(outcome({0xff, 0xff, 0xff, 0xff}), "4294967295 bytes was announced"));
}

BOOST_AUTO_TEST_CASE(a_cut_connection_is_told_from_a_close) {
  Target target;
  {
    Client client(target.loop, target.address, {});
    BOOST_REQUIRE(client.handshake());
    BOOST_REQUIRE(target.loop.until([&] { return target.end.ups.size() == 1; }));
    client.write({9, 0, 0, 0, 'h', 'a', 'l', 'f'});
  }
  BOOST_REQUIRE(target.loop.until([&] { return !target.end.downs.empty(); }));
  BOOST_TEST(target.end.downs.begin()->second.front().starts_with("connection lost"));
  BOOST_TEST(target.end.frame_count == 0u);
}

BOOST_AUTO_TEST_CASE(key_updates_without_end_are_cut_off) {
  Target target;
  Client client(target.loop, target.address, {});
  BOOST_REQUIRE(client.handshake());
  BOOST_REQUIRE(target.loop.until([&] { return target.end.ups.size() == 1; }));
  for (int asked = 0; asked < 10'000 && target.end.downs.empty(); asked += 100) {
    client.ask_for_key_updates(100);
    target.loop.run_for(std::chrono::milliseconds(1));
  }
  BOOST_REQUIRE(!target.end.downs.empty());
  BOOST_TEST(target.end.downs.begin()->second.front() == "the peer asks for key updates without end");
}

BOOST_AUTO_TEST_CASE(the_oldest_unproven_connection_makes_room) {
  Target target;
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 66; ++i) silent.push_back(target.plain_socket());
  BOOST_REQUIRE(target.loop.until([&] { return target.end.refusals.size() == 2; }));
  BOOST_TEST(contains(target.end.refusals[0], "have not proven a key"));
  char byte = 0;
  asio::error_code error;
  silent[0].read_some(asio::buffer(&byte, 1), error);
  BOOST_TEST((error == asio::error::eof || error == asio::error::connection_reset));

  End honest(target.loop);  // it is served all the same
  honest.transport.dial(target.address);
  BOOST_TEST(target.loop.until([&] { return honest.ups.size() == 1 && target.end.ups.size() == 1; }));
}

BOOST_AUTO_TEST_CASE(dials_that_fail_say_why) {
  Loop loop;
  std::string closed_port;
  {
    End gone(loop);
    closed_port = gone.listen();
  }
  End end(loop);
  end.transport.dial(closed_port);
  BOOST_TEST(end.failed_dials.empty());  // never from within dial()
  BOOST_REQUIRE(loop.until([&] { return end.failed_dials.size() == 1; }));
  BOOST_TEST(end.failed_dials[0].first == closed_port);
  BOOST_TEST(end.failed_dials[0].second == "connection refused");

  end.transport.dial("nonsense");
  BOOST_REQUIRE(loop.until([&] { return end.failed_dials.size() == 2; }));
  BOOST_TEST(contains(end.failed_dials[1].second, "the port is missing"));
  end.transport.dial("127.0.0.1:0");
  BOOST_REQUIRE(loop.until([&] { return end.failed_dials.size() == 3; }));
  end.transport.dial("name.invalid:7001");
  BOOST_REQUIRE(loop.until([&] { return end.failed_dials.size() == 4; }));
  BOOST_TEST(contains(end.failed_dials[3].second, "cannot resolve name.invalid"));
}

BOOST_AUTO_TEST_CASE(a_dialled_stranger_that_hangs_up_fails_the_dial) {
  Loop loop;
  tcp::acceptor acceptor(loop.io, {asio::ip::make_address("127.0.0.1"), 0});
  acceptor.async_accept([](const asio::error_code&, tcp::socket) {});  // the socket closes at once
  End end(loop);
  end.transport.dial("127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()));
  BOOST_REQUIRE(loop.until([&] { return end.failed_dials.size() == 1; }));
  BOOST_TEST(end.failed_dials[0].second.starts_with("TLS handshake failed: "));
  BOOST_TEST(end.ups.empty());
}

// A system without an /etc/hosts, such as a fresh chroot, may know no name at all.
boost::test_tools::assertion_result localhost_has_an_address(boost::unit_test::test_unit_id) {
  asio::io_context context;
  asio::error_code error;
  asio::ip::tcp::resolver(context).resolve("localhost", "", error);
  return !error;
}

BOOST_AUTO_TEST_CASE(a_name_is_resolved_and_its_addresses_are_tried,
                     *boost::unit_test::precondition(localhost_has_an_address)) {
  Loop loop;
  End server(loop), client(loop);
  const std::string address = server.listen();
  client.transport.dial("localhost" +
                        address.substr(address.rfind(':')));  // perhaps ::1 first, which refuses
  BOOST_REQUIRE(loop.until([&] { return client.ups.size() == 1; }));
  BOOST_TEST(client.ups[0].remote_address.starts_with("localhost:"));
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_named) {
  Loop loop;
  End first(loop), second(loop);
  const std::string address = first.listen();
  const Result<std::string> again = second.transport.listen(address);
  BOOST_REQUIRE(!again.ok());
  BOOST_TEST(again.error().text ==
             "cannot listen on " + address + ": address already in use; choose another with --listen");
  BOOST_TEST(!second.transport.listen("127.0.0.1").ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::net::test
