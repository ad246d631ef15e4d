// Equal sets of updates, other weights: who is at fault, and how the rest end equal.
#include "gossip/broadcast/evidence.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/world.h"

namespace rumor::gossip {

namespace {

using test::run_named;
using test::World;

// Node 0 signs two updates under one name and gives one to some, the other to others.
struct Twins {
  explicit Twins(std::size_t nodes, std::uint64_t seed = 3) : world(nodes, seed) {
    world.start_all();
    world.run_for(2s);
    test::FakeStore scratch;
    scratch.sign = world.nodes[0].store->sign;
    one = scratch.make(world.nodes[0].stream, world.nodes[0].id, 1, 80);
    other = one;
    Bytes payload = *one.payload;
    payload[7] ^= 1;
    other.header.payload_hash = sha256(payload);
    ++other.header.fingerprint;
    other.payload = std::make_shared<const Bytes>(payload);
    scratch.sign(other.header);
  }
  void give(std::size_t to, const StoredUpdate& update) {
    world.inject(0, to, encode(StreamDef{0, update.header.key.stream, update.header.origin}));
    world.inject(0, to, encode(Data{0, update.header, *update.payload, Coding::canonical}));
  }
  Hash256 hash(const StoredUpdate& update) const { return header_hash(run_named(1), update.header); }
  const StoredUpdate& winner() const { return hash(one) < hash(other) ? one : other; }
  Hash256 held(std::size_t i) const {
    const auto update = world.nodes[i].store->find(one.header.key);
    return update ? hash(*update) : Hash256{};
  }
  bool others_equal() const {
    for (std::size_t i = 2; i < world.nodes.size(); ++i)
      if (world.nodes[i].store->digest() != world.nodes[1].store->digest()) return false;
    return true;
  }
  World world;
  StoredUpdate one, other;
};

bool has(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(words) != line.npos; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(evidence)

BOOST_AUTO_TEST_CASE(two_updates_under_one_name_end_as_one_and_cost_the_signer_his_place) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Twins twins(6, seed);
    World& world = twins.world;
    for (std::size_t i = 1; i < 6; ++i) twins.give(i, i % 2 == 0 ? twins.one : twins.other);
    world.run_for(100ms);
    BOOST_TEST(world.run_while(40s, [&] { return twins.others_equal() && twins.held(1) != Hash256{}; }));
    world.run_for(5s);
    for (std::size_t i = 1; i < 6; ++i) {
      BOOST_TEST((twins.held(i) == twins.hash(twins.winner())));
      BOOST_TEST(world.nodes[i].protocol->divergence().empty());
      BOOST_TEST(world.nodes[i].protocol->peers().size() == 4u);
      BOOST_TEST(has(world.nodes[i].notes, "node " + world.nodes[0].id.hex() + " has signed two updates 1"));
    }
    BOOST_TEST(world.nodes[0].protocol->peers().empty());
    BOOST_TEST(world.nodes[0].protocol->superseded().find("the same image of this machine") != std::string::npos);
  }
}

// The other one comes in as a duplicate: no need to wait for digests.
BOOST_AUTO_TEST_CASE(a_second_update_seen_by_one_node_is_proof_at_once) {
  Twins twins(4);
  World& world = twins.world;
  twins.give(1, twins.one);
  world.run_for(200ms);
  twins.give(1, twins.other);
  world.run_for(200ms);
  for (std::size_t i = 1; i < 4; ++i) BOOST_TEST(has(world.nodes[i].notes, "has signed two updates"));
  BOOST_TEST(world.run_while(20s, [&] { return twins.others_equal(); }));
}

// One header, however often it is shown, convicts nobody; nor do forged ones.
BOOST_AUTO_TEST_CASE(nobody_is_convicted_without_two_signatures) {
  Twins twins(3);
  World& world = twins.world;
  twins.give(1, twins.one);
  world.run_for(500ms);
  world.inject(2, 1, encode(Equivocation{twins.one.header, {}}));
  world.run_for(50ms);
  BOOST_TEST(world.nodes[1].protocol->peers().size() == 2u);
  world.inject(2, 1, encode(Equivocation{twins.one.header, twins.one.header}));
  world.run_for(10s);
  BOOST_TEST(has(world.nodes[1].closes, "a proof that proves nothing"));
  BOOST_TEST(world.nodes[1].protocol->peers().size() == 1u);  // and is not linked again
  UpdateHeader forged = twins.other.header;
  forged.signature = world.nodes[2].keys->sign(update_message(run_named(1), forged));
  world.inject(0, 1, encode(Equivocation{twins.one.header, forged}));
  world.run_for(50ms);
  BOOST_TEST(has(world.nodes[1].closes, "a header that its origin has not signed"));
  BOOST_TEST(!has(world.nodes[1].notes, "has signed two"));
}

// A sound node among sound nodes closes the one link that differs, and goes on.
BOOST_AUTO_TEST_CASE(one_damaged_replica_among_many_stops_alone) {
  World world(5, 6);
  world.start_all();
  world.publish_all(2s, 5);
  world.run_for(4s);
  world.nodes[4].store->corrupt();
  world.run_for(30s);
  BOOST_TEST(world.nodes[4].protocol->divergence().find("this replica is damaged") == 0u);
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(world.nodes[i].protocol->divergence().empty());
    BOOST_TEST(has(world.nodes[i].closes, "it is damaged, or it lies"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
