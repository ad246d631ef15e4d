// A whole protocol behind real TLS, and somebody with a key of his own who knows the format and keeps to no
// rule.
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "gossip/protocol.h"
#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "tests/unit/gossip/fake_store.h"
#include "tests/unit/gossip/asio/harness.h"

namespace rumor::net {

namespace {

using namespace rumor::gossip;
using test::End;
using test::Loop;

RunId some_run() {
  RunId run;
  run.bytes.fill(0x31);
  return run;
}

// Protocol and transport, as the daemon joins them.
struct Host final : TransportEvents {
  Host(Loop& loop, AdmissionRule rule) : transport(loop.io, identity, *this) {
    Options options;
    options.self = identity.id();
    options.stream = stream_of(identity.id(), 1);
    options.run = some_run();
    options.run_name = "secret name";
    options.keys = std::make_shared<IdentityKeys>(identity);
    options.rule = std::move(rule);
    protocol = std::make_unique<Protocol>(options, store, Prng(1));
    handle([&] { protocol->start(now(), out); });
    address = transport.listen("127.0.0.1:0").value();
  }
  static TimePoint now() {
    static const auto began = std::chrono::steady_clock::now();
    return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began));
  }
  template <class Call>
  void handle(Call call) {
    call();
    protocol->check_invariants();
    for (Effect& effect : std::exchange(out, {})) {
      if (auto* frame = std::get_if<Send>(&effect))
        transport.send(frame->link, std::move(frame->frame), frame->lane);
      if (auto* close = std::get_if<Close>(&effect)) {
        closes.push_back(close->reason);
        transport.close(close->link, close->reason);
      }
    }
  }
  void on_link_up(const LinkUp& up) override {
    handle([&] { protocol->on_link_up(up, now(), out); });
  }
  void on_frame(LinkId link, BytesView frame) override {
    handle([&] { protocol->on_frame(link, frame, now(), out); });
  }
  void on_link_down(LinkId link, const std::string& reason) override {
    handle([&] { protocol->on_link_down(link, reason, now(), out); });
  }
  void on_dial_failed(const std::string&, const std::string&) override {}
  void on_backlog(LinkId link, bool full) override {
    handle([&] { protocol->on_backlog(link, full, now(), out); });
  }
  bool closed_for(const std::string& words) const {
    return !closes.empty() && closes.back().find(words) != std::string::npos;
  }

  Identity identity = Identity::ephemeral();
  gossip::test::FakeStore store;
  Outbox out;
  std::unique_ptr<Protocol> protocol;
  Transport transport;
  std::string address;
  std::vector<std::string> closes;
};

// Speaks the protocol by hand.
struct Visitor {
  Visitor(Loop& some_loop, Host& some_host) : loop(some_loop), host(some_host), end(some_loop, identity) {}
  bool connect() {
    const std::size_t before = end.ups.size();
    end.transport.dial(host.address);
    return loop.until([&] { return end.ups.size() > before; });
  }
  Hello hello() const {
    Hello message;
    message.run = some_run();
    message.stream = stream();
    message.self = {identity.id(), 1, {}};
    message.self.signature = keys.sign(record_message(some_run(), message.self));
    return message;
  }
  StreamId stream() const { return stream_of(identity.id(), 9); }
  void send(const Bytes& frame) { end.transport.send(end.link(), frame, gossip::Lane::control); }
  bool closed() {
    return loop.until([&] { return end.downs.contains(end.link()); });
  }
  std::vector<int> types() const {
    std::vector<int> seen;
    for (const Bytes& frame : end.frames) seen.push_back(frame[0]);
    return seen;
  }
  StoredUpdate update(std::uint64_t seq) const {
    gossip::test::FakeStore scratch;
    scratch.sign = [&](UpdateHeader& header) {
      header.signature = keys.sign(update_message(some_run(), header));
    };
    return scratch.make(stream(), identity.id(), seq, 100);
  }
  void send(const StoredUpdate& update) {
    send(encode(StreamDef{0, stream(), identity.id()}));
    send(encode(Data{0, update.header, *update.payload, Coding::canonical}));
  }

  Loop& loop;
  Host& host;
  Identity identity = Identity::ephemeral();
  IdentityKeys keys{identity};
  End end;
};

AdmissionRule closed_to_all() {
  return {false, {}, {}, {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_peer)

BOOST_AUTO_TEST_CASE(a_stranger_gets_a_refusal_and_nothing_else) {
  Loop loop;
  Host host(loop, closed_to_all());
  Visitor visitor(loop, host);
  BOOST_REQUIRE(visitor.connect());
  loop.run_for();
  BOOST_TEST(visitor.end.frames.empty());  // not a word before it has said who it is
  visitor.send(encode(visitor.hello()));
  BOOST_TEST(visitor.closed());
  BOOST_REQUIRE(visitor.types() == std::vector<int>{static_cast<int>(FrameType::reject)});
  const auto frame = decode(visitor.end.frames[0]);
  const auto& reject = std::get<Reject>(*frame);
  BOOST_TEST((reject.code == Reject::Code::not_admitted));
  BOOST_TEST(reject.run_name.empty());
  BOOST_TEST(reject.run.is_zero());
  BOOST_TEST(reject.others.empty());
  BOOST_TEST(host.protocol->members() == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_but_a_greeting_is_read_from_a_stranger) {
  for (const std::size_t size : {std::size_t{5}, limits::hello_bytes_max + 1, std::size_t{300'000}}) {
    Loop loop;
    Host host(loop, closed_to_all());
    Visitor visitor(loop, host);
    BOOST_REQUIRE(visitor.connect());
    Bytes frame(size, 0x55);
    frame[0] = static_cast<std::uint8_t>(FrameType::data);
    visitor.send(frame);
    BOOST_TEST(visitor.closed());
    BOOST_TEST(visitor.end.frames.empty());
    BOOST_TEST(host.store.have().empty());
  }
}

// It has seen the token of another on the wire of its own link, and shows it.
BOOST_AUTO_TEST_CASE(a_token_is_of_no_use_to_who_saw_it) {
  Loop loop;
  const Identity owner = Identity::ephemeral(), token_key = Identity::ephemeral();
  Host host(loop, {false, {}, {}, owner.id()});
  Visitor joiner(loop, host), thief(loop, host);
  Token token{some_run(), token_key.id(), Role::train, 0, 0, {}, {}};
  token.owner = owner.sign(token_message(token));
  const Admit admit{token, token_key.sign(use_message(some_run(), joiner.identity.id())), {}, {}};

  Hello stolen = thief.hello();
  stolen.self.admit = admit.encode();
  BOOST_REQUIRE(thief.connect());
  thief.send(encode(stolen));
  BOOST_TEST(thief.closed());
  BOOST_TEST(host.closed_for("somebody who does not hold it"));

  Hello honest = joiner.hello();
  honest.self.admit = admit.encode();
  BOOST_REQUIRE(joiner.connect());
  joiner.send(encode(honest));
  BOOST_TEST(loop.until([&] { return host.protocol->peers().size() == 1; }));

  // Nor is the whole greeting, to the byte: the connection has proven another key.
  Visitor replayer(loop, host);
  BOOST_REQUIRE(replayer.connect());
  replayer.send(encode(honest));
  BOOST_TEST(replayer.closed());
  BOOST_TEST(host.closed_for("names another node"));
}

BOOST_AUTO_TEST_CASE(forged_updates_are_refused_and_their_bringer_stays_out) {
  Loop loop;
  Host host(loop, {});
  Visitor visitor(loop, host);
  BOOST_REQUIRE(visitor.connect());
  visitor.send(encode(visitor.hello()));
  visitor.send(visitor.update(1));
  BOOST_TEST(loop.until([&] { return host.store.have().contains({visitor.stream(), 1}); }));
  StoredUpdate forged = visitor.update(2);
  ++forged.header.fingerprint;
  visitor.send(forged);
  BOOST_TEST(visitor.closed());
  BOOST_TEST(host.closed_for("is not signed by " + visitor.identity.id().brief()));
  BOOST_TEST(host.store.have().count() == 1u);
  BOOST_REQUIRE(visitor.connect());
  BOOST_TEST(visitor.closed());
  BOOST_TEST(host.closed_for("banned"));
}

// Real signatures all the way: a second update under one name.
BOOST_AUTO_TEST_CASE(who_signs_two_updates_under_one_name_is_put_out) {
  Loop loop;
  Host host(loop, {});
  Visitor visitor(loop, host);
  BOOST_REQUIRE(visitor.connect());
  visitor.send(encode(visitor.hello()));
  const StoredUpdate one = visitor.update(1);
  visitor.send(one);
  StoredUpdate other = one;
  Bytes payload = *one.payload;
  payload[0] ^= 1;
  other.payload = std::make_shared<const Bytes>(payload);
  other.header.payload_hash = sha256(payload);
  other.header.signature = visitor.keys.sign(update_message(some_run(), other.header));
  visitor.send(other);
  BOOST_TEST(visitor.closed());
  BOOST_TEST(host.closed_for("put out"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::net
