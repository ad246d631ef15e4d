// Revocations: all replicas end equal, to the last bit of their fingerprints, whatever came first.
#include "gossip/broadcast/revoking.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/world.h"

namespace rumor::gossip {

namespace {

using test::run_named;
using test::World;

struct Run {
  explicit Run(std::size_t nodes, std::uint64_t seed = 4) : world(nodes, seed) {
    owner.bytes.fill(0x0f);
    for (std::size_t i = 0; i < nodes; ++i) world.rules[i].owner = owner;
    world.start_all();
    world.run_for(2s);
  }
  Revocation of(std::size_t i, bool all = true, SeqRange range = {1, seq_max}) const {
    Revocation one{world.nodes[i].id, all ? StreamId{} : world.nodes[i].stream, range, {}};
    one.signature = sim::TagKeys(owner).sign(revoke_message(run_named(1), one));
    return one;
  }
  std::uint64_t held(std::size_t at, std::size_t of) const {
    const auto& streams = world.nodes[at].store->have().streams();
    const auto found = streams.find(world.nodes[of].stream);
    return found == streams.end() ? 0 : ranges_count(found->second);
  }
  NodeId owner;
  World world;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(revoking)

BOOST_AUTO_TEST_CASE(it_reaches_all_and_subtracts_everywhere) {
  Run run(5);
  run.world.publish_all(1s, 10);
  run.world.run_for(2s);
  BOOST_TEST(run.world.all_equal());
  BOOST_TEST(run.held(3, 1) == 10u);
  BOOST_TEST(run.world.revoke(0, run.of(1, false, {3, 7})).ok());
  run.world.run_for(1s);
  BOOST_TEST(run.world.all_equal());
  for (std::size_t i = 0; i < 5; ++i) BOOST_TEST(run.held(i, 1) == 5u);
  BOOST_TEST(run.world.link_count() == 10u);  // part of a stream: nobody is put out
  run.world.publish(1);
  run.world.run_for(1s);
  BOOST_TEST(run.held(4, 1) == 6u);  // what is not covered goes on
}

// The word is there before the updates: they are never added.
BOOST_AUTO_TEST_CASE(updates_that_come_later_are_not_taken) {
  Run run(3);
  BOOST_TEST(run.world.revoke(0, run.of(2, false, {1, 5})).ok());
  run.world.run_for(500ms);
  for (int i = 0; i < 8; ++i) run.world.publish(2);  // its own store is not asked
  run.world.run_for(3s);
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(run.held(i, 2) == 3u);
  BOOST_TEST((run.world.nodes[0].store->digest() == run.world.nodes[1].store->digest()));
}

// Half of the network hears of it while cut off from the other half, which trains on.
BOOST_AUTO_TEST_CASE(the_order_does_not_matter) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Run run(6, seed);
    run.world.publish_all(500ms, 10);
    run.world.partition({0, 1, 2});
    BOOST_TEST(run.world.revoke(0, run.of(5, false, {2, 40})).ok());
    run.world.publish_all(1s, 10);
    run.world.run_for(2s);
    BOOST_TEST(run.held(3, 5) > 5u);
    run.world.heal();
    BOOST_TEST(run.world.run_while(120s, [&] { return run.world.all_equal(); }));
    for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(run.held(i, 5) == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_node_that_is_put_out_loses_its_links_and_all_it_did) {
  Run run(4);
  run.world.publish_all(1s, 5);
  run.world.run_for(1s);
  BOOST_TEST(run.world.revoke(1, run.of(3)).ok());
  run.world.run_for(2s);
  // It dials again now and then, and is not let in.
  BOOST_TEST(run.world.nodes[3].protocol->peers().empty());
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(run.world.nodes[i].protocol->peers().size() == 2u);
    BOOST_TEST(run.held(i, 3) == 0u);
    BOOST_TEST((run.world.nodes[i].store->digest() == run.world.nodes[0].store->digest()));
  }
  // Nor does it come back with a new stream.
  run.world.kill(3);
  run.world.start(3, {"n0"});
  run.world.run_for(5s);
  BOOST_TEST(run.world.nodes[3].protocol->peers().empty());
}

// It cannot subtract what it no longer has, and takes over a replica that could.
BOOST_AUTO_TEST_CASE(a_node_without_the_log_takes_a_snapshot) {
  Run run(3);
  run.world.publish_all(1s, 10);
  run.world.run_for(1s);
  run.world.nodes[2].store->trim_log();
  BOOST_TEST(run.world.revoke(0, run.of(1, false, {1, 4})).ok());
  BOOST_TEST(run.world.run_while(30s, [&] { return run.world.all_equal(); }));
  BOOST_TEST(run.held(2, 1) == 6u);
  BOOST_TEST(run.world.nodes[2].protocol->counters().snapshots_installed == 1u);
}

BOOST_AUTO_TEST_CASE(a_late_joiner_hears_of_it) {
  Run run(3);
  run.world.publish_all(1s, 5);
  run.world.kill(2);
  run.world.run_for(1s);
  BOOST_TEST(run.world.revoke(0, run.of(1, false, {1, 3})).ok());
  run.world.start(2, {"n1"});
  BOOST_TEST(run.world.run_while(30s, [&] { return run.world.all_equal(); }));
  BOOST_TEST(run.held(2, 1) == 2u);
}

BOOST_AUTO_TEST_CASE(only_the_owner_may) {
  Run run(2);
  run.world.publish(0);
  run.world.run_for(500ms);
  Revocation forged = run.of(0);
  forged.signature = run.world.nodes[1].keys->sign(revoke_message(run_named(1), forged));
  BOOST_TEST((run.world.revoke(1, forged).error().code == Errc::mismatch));
  run.world.inject(0, 1, encode(Revocations{{forged}}));
  run.world.run_for(50ms);
  BOOST_TEST(run.world.nodes[1].closes.front().find("passes on a revocation that is none") == 0u);
  BOOST_TEST(run.held(1, 0) == 1u);
  // The stream is not the node's.
  Revocation crossed{run.world.nodes[0].id, run.world.nodes[1].stream, {1, 9}, {}};
  crossed.signature = sim::TagKeys(run.owner).sign(revoke_message(run_named(1), crossed));
  BOOST_TEST(!run.world.revoke(1, crossed).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
