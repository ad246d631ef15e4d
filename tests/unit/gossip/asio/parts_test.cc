// The parts of the transport that need no socket: addresses, identities, frames, TLS over memory.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

#include "gossip/asio/address.h"
#include "gossip/asio/frames.h"
#include "gossip/asio/identity.h"
#include "gossip/asio/tls.h"
#include "runtime/base/limits.h"
#include "tests/unit/gossip/asio/harness.h"
#include "tests/unit/scratch_folder.h"

namespace rumor::net::test {

BOOST_AUTO_TEST_SUITE(parts)

BOOST_AUTO_TEST_CASE(addresses_are_read_and_written) {
  for (const std::string text :
       {"127.0.0.1:7001", "[::1]:7001", "host.example:0", "a_b-c:65535", "[fe80::1]:1"}) {
    const Result<Address> address = parse_address(text);
    BOOST_REQUIRE_MESSAGE(address.ok(), text);
    BOOST_TEST((*address).text() == text);
  }
  BOOST_TEST((*parse_address("[::1]:7001")).host == "::1");
  BOOST_TEST((*parse_address("[::1]:7001")).port == 7001);
}

BOOST_AUTO_TEST_CASE(wrong_addresses_are_refused_with_a_fix) {
  const std::string nul("a\0b:1", 5);
  for (const std::string& text :
       {std::string("127.0.0.1"), std::string(""), std::string(":1"), std::string("a:"),
        std::string("a:65536"), std::string("a:-1"), std::string("a:1x"), std::string("::1:5"),
        std::string("[::1]"), std::string("[x]:1"), std::string("a b:1"), nul, std::string("-a:1"),
        std::string("a:+1"), std::string(300, 'a') + ":1"}) {
    const Result<Address> address = parse_address(text);
    BOOST_REQUIRE_MESSAGE(!address.ok(), text);
    BOOST_TEST(address.error().text.find("write host:port") != std::string::npos);
  }
  const std::string escape = parse_address("\x1b[31m").error().text;
  BOOST_TEST(escape.find('\x1b') == std::string::npos);  // hostile text does not reach a terminal
}

BOOST_AUTO_TEST_CASE(loopback_is_what_only_we_can_reach) {
  for (const char* host : {"127.0.0.1", "127.8.8.8", "::1", "localhost", "LocalHost", "::ffff:127.0.0.1"})
    BOOST_TEST(is_loopback(host), host);
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org", "128.0.0.1", ""})
    BOOST_TEST(!is_loopback(host), host);
}

BOOST_AUTO_TEST_CASE(a_key_file_is_made_once_and_read_again) {
  const Scratch folder;
  const std::string path = folder.path("key.pem");
  const Result<Identity> first = Identity::load_or_create(path);
  BOOST_REQUIRE(first.ok());
  struct stat status {};
  BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0600u);
  BOOST_TEST(folder.entries() == 1u);  // no temporary file is left
  const Result<Identity> second = Identity::load_or_create(path);
  BOOST_REQUIRE(second.ok());
  BOOST_TEST(((*first).id() == (*second).id()));
  BOOST_TEST((Identity::ephemeral().id() != (*first).id()));
}

BOOST_AUTO_TEST_CASE(unfit_key_files_are_refused) {
  const Scratch folder;
  const std::string path = folder.path("key.pem");
  BOOST_REQUIRE(Identity::load_or_create(path).ok());
  ::chmod(path.c_str(), 0644);
  const Result<Identity> open = Identity::load_or_create(path);
  BOOST_REQUIRE(!open.ok());
  BOOST_TEST(open.error().text.find("chmod 600") != std::string::npos);

  ::chmod(path.c_str(), 0600);
  std::ofstream(path, std::ios::trunc) << "-----BEGIN PRIVATE KEY-----\nnot base64\n";
  BOOST_REQUIRE(!Identity::load_or_create(path).ok());
  BOOST_TEST((Identity::load_or_create(path).error().code == Errc::corrupt));
  BOOST_TEST(std::filesystem::file_size(path) > 0u);  // nothing is overwritten
  BOOST_TEST((Identity::load_or_create(folder.path("no/such/folder/key")).error().code == Errc::io));
}

BOOST_AUTO_TEST_CASE(signatures_verify_and_changes_do_not) {
  const Identity identity = Identity::ephemeral();
  Bytes message = patterned(5, 100);
  Signature signature = identity.sign(message);
  BOOST_TEST((identity.sign(message) == signature));
  BOOST_TEST(verify(identity.id(), message, signature));
  BOOST_TEST(!verify(Identity::ephemeral().id(), message, signature));
  message[50] ^= 1;
  BOOST_TEST(!verify(identity.id(), message, signature));
  BOOST_TEST(!verify(NodeId{}, message, Signature{}));
}

// Every way to cut the stream gives the same frames.
BOOST_AUTO_TEST_CASE(frames_survive_any_cut) {
  FrameQueue queue;
  std::vector<Bytes> sent;
  for (std::uint32_t i = 0; i < 12; ++i)
    queue.push(sent.emplace_back(patterned(i, 1 + i * i * 3)), gossip::Lane::live);
  Bytes stream;
  queue.gather(stream, SIZE_MAX);
  BOOST_TEST(queue.empty());
  BOOST_TEST(queue.bytes() == 0u);
  for (std::size_t step = 1; step < 64; ++step) {
    FrameReader reader;
    std::vector<Bytes> got;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      BytesView input = BytesView(stream).subspan(at, std::min(step, stream.size() - at));
      while (const auto frame = reader.next(input)) got.emplace_back(frame->begin(), frame->end());
      BOOST_REQUIRE(input.empty());
    }
    BOOST_REQUIRE((got == sent));
  }
}

BOOST_AUTO_TEST_CASE(a_reader_stays_failed) {
  FrameReader reader;
  const Bytes stream{1, 0, 0, 0, 'x', 0, 0, 0, 0, 1, 0, 0, 0, 'y'};
  BytesView input = stream;
  BOOST_REQUIRE(reader.next(input).has_value());
  BOOST_TEST(!reader.next(input).has_value());
  BOOST_TEST(!reader.error().empty());
  BOOST_TEST(!reader.next(input).has_value());
}

BOOST_AUTO_TEST_CASE(the_queue_puts_control_first_and_keeps_to_its_measure) {
  FrameQueue queue;
  queue.push(Bytes(10, 'd'), gossip::Lane::live);
  queue.push(Bytes(10, 'c'), gossip::Lane::control);
  queue.push(Bytes(10, 'C'), gossip::Lane::control);
  Bytes out;
  queue.gather(out, 30);  // two of 14 fit
  BOOST_TEST(out.size() == 28u);
  BOOST_TEST(out[4] == 'c');
  BOOST_TEST(out[18] == 'C');
  BOOST_TEST(queue.bytes() == 14u);
  queue.push(Bytes(1000, 'L'), gossip::Lane::control);
  out.clear();
  queue.gather(out, 30);  // one goes, however large
  BOOST_TEST(out.size() == 1004u);
}

BOOST_AUTO_TEST_CASE(tls_sessions_meet_over_memory) {
  const Identity one = Identity::ephemeral(), two = Identity::ephemeral();
  const TlsContext dialling(one), accepting(two);
  TlsSession dialler(dialling, TlsSession::Role::dialler), acceptor(accepting, TlsSession::Role::acceptor);
  const auto move = [](TlsSession& from, TlsSession& to) {
    Bytes bytes;
    from.take_output(bytes);
    for (const std::uint8_t byte : bytes) to.feed({&byte, 1});  // in the smallest pieces there are
  };
  bool done_dialling = false, done_accepting = false;
  for (int turn = 0; turn < 4 && !(done_dialling && done_accepting); ++turn) {
    done_dialling = *dialler.handshake();
    move(dialler, acceptor);
    done_accepting = *acceptor.handshake();
    move(acceptor, dialler);
  }
  BOOST_REQUIRE((done_dialling && done_accepting));
  BOOST_TEST((dialler.peer() == two.id()));
  BOOST_TEST((acceptor.peer() == one.id()));

  const Bytes message = patterned(1, 40'000);
  BOOST_REQUIRE(dialler.write(message).ok());
  dialler.end();
  move(dialler, acceptor);
  Bytes got(50'000);
  std::size_t size = 0;
  while (!acceptor.ended()) size += *acceptor.read(std::span(got).subspan(size));
  got.resize(size);
  BOOST_TEST((got == message));
}

BOOST_AUTO_TEST_CASE(bulk_goes_last_and_never_starves) {
  FrameQueue queue;
  for (int i = 0; i < 12; ++i) queue.push(Bytes(10, 'd'), gossip::Lane::live);
  for (int i = 0; i < 3; ++i) queue.push(Bytes(10, 'b'), gossip::Lane::bulk);
  queue.push(Bytes(10, 'c'), gossip::Lane::control);
  BOOST_TEST(queue.bulk_bytes() == 3u * 14);
  std::string order;
  while (!queue.empty()) {
    Bytes out;
    queue.gather(out, 14);
    order += static_cast<char>(out[4]);
  }
  BOOST_TEST(order == "cddddbddddbddddb");
  BOOST_TEST(queue.bytes() == 0u);
  BOOST_TEST(queue.bulk_bytes() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::net::test
