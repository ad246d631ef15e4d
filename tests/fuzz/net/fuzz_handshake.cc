// Fuzzes what a stranger's bytes reach before anybody knows who he is: the TLS handshake on both sides, as
// gossip/asio drives it, and the first frames behind it.
//
// The first byte says how the rest is used:
//   even, bit 1 clear: the rest comes to us as it is, in pieces of 97 bytes (bit 2 set: we had dialled)
//   even, bit 1 set:   a real peer shakes hands with us; of what it sends, bytes are changed: u16 where, u8 how
//   odd:               a real peer has shaken hands, and the rest is what it says, as frames
#include <algorithm>
#include <array>

#include "gossip/asio/frames.h"
#include "gossip/asio/tls.h"
#include "gossip/wire/wire.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "tests/fuzz/target.h"

using namespace rumor;
using net::TlsSession;

namespace {

struct Peer {
  net::Identity identity = net::Identity::ephemeral();
  net::TlsContext context{identity};
};

Peer& host() {
  static Peer peer;
  return peer;
}

Peer& visitor() {
  static Peer peer;
  return peer;
}

Bytes taken(TlsSession& session) {
  Bytes out;
  session.take_output(out);
  RUMOR_CHECK(out.size() < (64u << 10));  // a stranger cannot make us send much
  return out;
}

// Decrypts the input, cuts it into frames and decodes them, as a connection does.
void read_all(TlsSession& session) {
  net::FrameReader reader(limits::hello_bytes_max);
  std::array<std::uint8_t, 16 << 10> plaintext;
  while (true) {
    const auto got = session.read(plaintext);
    if (!got || *got == 0) return;
    BytesView input(plaintext.data(), *got);
    while (const auto frame = reader.next(input)) static_cast<void>(gossip::decode(*frame));
    if (!reader.error().empty()) return;
  }
}

void raw(TlsSession::Role role, BytesView bytes) {
  TlsSession session(host().context, role);
  if (role == TlsSession::Role::dialler) RUMOR_CHECK(session.handshake().ok());
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), 97);
    session.feed(bytes.first(size));
    bytes = bytes.subspan(size);
    const auto done = session.handshake();
    static_cast<void>(taken(session));
    if (!done) return;
    RUMOR_CHECK(!*done);  // nobody proves a key by what he has made up before
  }
}

// Changes bytes of the stream that begins at `offset`.
void change(Bytes& bytes, std::size_t offset, BytesView changes) {
  for (std::size_t i = 0; i + 3 <= changes.size(); i += 3) {
    const std::size_t at = changes[i] | static_cast<std::size_t>(changes[i + 1]) << 8;
    if (at >= offset && at - offset < bytes.size()) bytes[at - offset] ^= changes[i + 2];
  }
}

// True when both ends have finished.
bool shake(TlsSession& ours, TlsSession& theirs, BytesView changes) {
  bool we_are_done = false, they_are_done = false;
  std::size_t offset = 0;
  for (int flight = 0; flight < 6 && !(we_are_done && they_are_done); ++flight) {
    if (!they_are_done) {
      const auto done = theirs.handshake();
      if (!done) return false;
      they_are_done = *done;
    }
    Bytes sent = taken(theirs);
    const std::size_t size = sent.size();
    change(sent, offset, changes);
    offset += size;
    ours.feed(sent);
    if (!we_are_done) {
      const auto done = ours.handshake();
      if (!done) return false;
      we_are_done = *done;
    }
    theirs.feed(taken(ours));
  }
  // Whoever got this far is who he says, whatever was changed on the way.
  if (we_are_done) RUMOR_CHECK(ours.peer() == visitor().identity.id());
  return we_are_done && they_are_done;
}

}  // namespace

FUZZ_TARGET(handshake) {
  if (size == 0 || size > (64u << 10)) return 0;
  const BytesView rest(data + 1, size - 1);
  const bool says = (data[0] & 1) != 0, changed = (data[0] & 2) != 0;
  if (!says && !changed) {
    raw((data[0] & 4) != 0 ? TlsSession::Role::dialler : TlsSession::Role::acceptor, rest);
    return 0;
  }
  TlsSession ours(host().context, TlsSession::Role::acceptor);
  TlsSession theirs(visitor().context, TlsSession::Role::dialler);
  const bool done = shake(ours, theirs, says ? BytesView{} : rest);
  if (!says) return 0;
  RUMOR_CHECK(done);
  if (!theirs.write(rest)) return 0;
  Bytes said;
  theirs.take_output(said);
  ours.feed(said);
  read_all(ours);
  return 0;
}
