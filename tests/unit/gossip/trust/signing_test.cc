// Signatures: forged, altered, replayed and foreign updates and records, and the fate of the link that brought them.
#include "gossip/trust/signing.h"

#include <boost/test/unit_test.hpp>

#include "gossip/asio/identity.h"
#include "gossip/links/members.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip {

namespace {

using test::run_named;
using test::World;

// Two nodes, linked; and frames that node 0 could send to node 1.
struct Pair {
  explicit Pair(std::uint64_t seed = 3) : world(2, seed) {
    world.start_all();
    world.run_for(2s);
    BOOST_REQUIRE(world.link_count() == 1u);
  }
  // An update of node 0 that node 1 has not seen.
  StoredUpdate update(std::uint64_t seq = 1) {
    return world.nodes[0].store->compose(world.nodes[0].stream, world.nodes[0].id, seq, 100);
  }
  // Node 0's stream is number `index` on the link from here on.
  void define(std::uint32_t index, const StreamId& stream, const NodeId& origin) {
    world.inject(0, 1, encode(StreamDef{index, stream, origin}));
  }
  void send(std::uint32_t index, const StoredUpdate& update) {
    world.inject(0, 1, encode(Data{index, update.header, *update.payload, Coding::canonical}));
    world.run_for(100ms);
  }
  void resign(StoredUpdate& update, RunId run = run_named(1)) {
    update.header.signature = world.nodes[0].keys->sign(update_message(run, update.header));
  }
  bool applied() const { return world.nodes[1].store->have().contains({world.nodes[0].stream, 1}); }
  const std::vector<std::string>& closes() const { return world.nodes[1].closes; }
  bool refused(const std::string& words) const {
    return !applied() && closed_for(words) && world.nodes[1].protocol->counters().updates_invalid == 1 && named();
  }
  // The log says who brought it.
  bool named() const {
    const auto& notes = world.nodes[1].notes;
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(world.nodes[0].id.brief() + " sent an invalid update") == 0 &&
             note.find("not linked for an hour") != std::string::npos;
    });
  }
  bool closed_for(const std::string& words) const {
    return std::any_of(closes().begin(), closes().end(),
                       [&](const auto& reason) { return reason.find(words) != std::string::npos; });
  }
  World world;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(signing)

BOOST_AUTO_TEST_CASE(a_stream_shows_whose_it_is) {
  NodeId one, two;
  one.bytes.fill(1);
  two.bytes.fill(2);
  const StreamId stream = stream_of(one, 77);
  BOOST_TEST((stream == stream_of(one, 77)));
  BOOST_TEST((stream != stream_of(one, 78)));
  BOOST_TEST(stream_belongs_to(stream, one));
  BOOST_TEST(!stream_belongs_to(stream, two));
  for (std::size_t i = 0; i < StreamId::size; ++i) {
    StreamId other = stream;
    other.bytes[i] ^= 0x10;
    BOOST_TEST(!stream_belongs_to(other, one));
  }
}

// Each field is under the signature.
BOOST_AUTO_TEST_CASE(every_field_of_a_header_is_signed) {
  const net::Identity identity = net::Identity::ephemeral();
  const net::IdentityKeys keys(identity);
  const RunId run = run_named(1);
  UpdateHeader header{{stream_of(identity.id(), 5), 9}, identity.id(), {}, 11, 12, 13};
  header.payload_hash.bytes.fill(4);
  header.signature = keys.sign(update_message(run, header));
  BOOST_TEST(update_is_signed(keys, run, header));
  BOOST_TEST(!update_is_signed(keys, run_named(2), header));
  const auto refused = [&](auto change) {
    UpdateHeader other = header;
    change(other);
    return !update_is_signed(keys, run, other);
  };
  BOOST_TEST(refused([&](UpdateHeader& h) { h.key.stream = stream_of(identity.id(), 6); }));
  BOOST_TEST(refused([](UpdateHeader& h) { ++h.key.seq; }));
  BOOST_TEST(refused([](UpdateHeader& h) { h.origin = net::Identity::ephemeral().id(); }));
  BOOST_TEST(refused([](UpdateHeader& h) { h.payload_hash.bytes[31] ^= 1; }));
  BOOST_TEST(refused([](UpdateHeader& h) { ++h.fingerprint; }));
  BOOST_TEST(refused([](UpdateHeader& h) { ++h.period; }));
  BOOST_TEST(refused([](UpdateHeader& h) { ++h.samples; }));
  BOOST_TEST(refused([](UpdateHeader& h) { h.signature.bytes[0] ^= 1; }));
}

BOOST_AUTO_TEST_CASE(every_field_of_a_record_is_signed) {
  const net::Identity identity = net::Identity::ephemeral();
  const net::IdentityKeys keys(identity);
  PeerRecord record{identity.id(), 3, {"a:1", "b:2"}};
  record.signature = keys.sign(record_message(run_named(1), record));
  BOOST_TEST(record_is_signed(keys, run_named(1), record));
  BOOST_TEST(!record_is_signed(keys, run_named(2), record));
  for (PeerRecord other : {PeerRecord{record.node, 4, record.addresses, record.signature},
                           PeerRecord{record.node, 3, {"a:1", "b:3"}, record.signature},
                           PeerRecord{record.node, 3, {"a:1b:2"}, record.signature},
                           PeerRecord{record.node, 3, record.addresses, record.signature, {}, 1}})
    BOOST_TEST(!record_is_signed(keys, run_named(1), other));
}

BOOST_AUTO_TEST_CASE(an_honest_update_arrives) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  pair.send(0, pair.update());
  BOOST_TEST(pair.applied());
  BOOST_TEST(pair.closes().empty());
}

BOOST_AUTO_TEST_CASE(an_altered_payload_is_refused_and_its_origin_named) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  StoredUpdate update = pair.update();
  Bytes changed = *update.payload;
  changed[50] ^= 1;
  update.payload = std::make_shared<const Bytes>(changed);
  pair.send(0, update);
  BOOST_TEST(pair.refused("is not signed by " + pair.world.nodes[0].id.brief()));
}

BOOST_AUTO_TEST_CASE(an_altered_header_is_refused) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  StoredUpdate update = pair.update();
  update.header.samples = 1'000'000;
  pair.send(0, update);
  BOOST_TEST(pair.refused("is not signed"));
}

// An honest signature, shown under another number.
BOOST_AUTO_TEST_CASE(a_replayed_update_is_refused) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  StoredUpdate update = pair.update();
  update.header.key.seq = 2;
  pair.send(0, update);
  BOOST_TEST(pair.refused("update 2"));
}

// To the byte what came before: it adds nothing, and who sends it twice is not to blame.
BOOST_AUTO_TEST_CASE(the_same_update_again_changes_nothing) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  const StoredUpdate update = pair.update();
  pair.send(0, update);
  BOOST_REQUIRE(pair.applied());
  const ReplicaDigest before = pair.world.nodes[1].store->digest();
  pair.send(0, update);
  BOOST_TEST((pair.world.nodes[1].store->digest() == before));
  BOOST_TEST(pair.world.nodes[1].protocol->counters().updates_duplicate == 1u);
  BOOST_TEST(pair.closes().empty());
}

// Signed by who brings it, and said to be another's.
BOOST_AUTO_TEST_CASE(an_update_in_the_name_of_another_is_refused_and_its_bringer_named) {
  Pair pair;
  NodeId other;
  other.bytes.fill(0x5c);
  StoredUpdate update = pair.world.nodes[0].store->compose(stream_of(other, 3), other, 1, 100);
  pair.resign(update);
  pair.define(0, stream_of(other, 3), other);
  pair.send(0, update);
  BOOST_TEST(pair.refused("is not signed by " + other.brief()));
  BOOST_TEST(pair.world.nodes[1].store->have().empty());
}

BOOST_AUTO_TEST_CASE(an_update_of_another_run_is_refused) {
  Pair pair;
  pair.define(0, pair.world.nodes[0].stream, pair.world.nodes[0].id);
  StoredUpdate update = pair.update();
  pair.resign(update, run_named(2));
  pair.send(0, update);
  BOOST_TEST(pair.refused("is not signed"));
}

// Nobody takes numbers in the stream of another.
BOOST_AUTO_TEST_CASE(a_stream_cannot_be_claimed) {
  Pair pair;
  pair.define(0, stream_of(pair.world.nodes[1].id, 9), pair.world.nodes[0].id);
  pair.world.run_for(100ms);
  BOOST_TEST(pair.closed_for("names another origin for a stream than the stream's name shows"));
}

BOOST_AUTO_TEST_CASE(a_forged_record_closes_the_link) {
  Pair pair;
  PeerRecord forged{NodeId{}, 5, {"evil:1"}};
  forged.node.bytes.fill(9);
  forged.signature = pair.world.nodes[0].keys->sign(record_message(run_named(1), forged));
  pair.world.inject(0, 1, encode(Peers{{forged}}));
  pair.world.run_for(50ms);
  BOOST_TEST(pair.closed_for("shows a record of 09090909"));
  BOOST_TEST(pair.world.nodes[1].protocol->members() == 2u);
}

// Two records with one number, both signed: everybody keeps the same one.
BOOST_AUTO_TEST_CASE(two_records_of_one_number_end_as_one) {
  const sim::TagKeys keys{NodeId{}};
  const auto node = [](std::uint8_t number) {
    NodeId id;
    id.bytes.fill(number);
    return id;
  };
  std::vector<PeerRecord> twins{{node(7), 4, {"a:1"}}, {node(7), 4, {"b:1"}}};
  for (PeerRecord& twin : twins)
    twin.signature = sim::TagKeys(node(7)).sign(record_message(run_named(1), twin));
  MemberTable one(node(1), run_named(1), keys, {}), two(node(1), run_named(1), keys, {});
  one.apply(twins[0], {});
  one.apply(twins[1], {});
  two.apply(twins[1], {});
  two.apply(twins[0], {});
  BOOST_TEST(one.hash() == two.hash());
  one.check_invariants();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
