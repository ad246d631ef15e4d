// Peers that begin without the run's initial weights and take a snapshot of whoever has them (PROTOCOL.md 6.7).
#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

BOOST_AUTO_TEST_SUITE(lacking_weights)

BOOST_AUTO_TEST_CASE(a_run_without_an_update_gives_its_weights) {
  World world(2);
  world.nodes[1].store->lose_weights();
  world.start(0, {});
  world.start(1, {"n0"});
  const Protocol& joiner = *world.nodes[1].protocol;
  BOOST_TEST(!joiner.ready_to_train());
  BOOST_TEST(world.run_while(10s, [&] { return joiner.ready_to_train(); }));
  BOOST_TEST(joiner.counters().snapshots_installed == 1u);
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  for (const WorldNode& node : world.nodes) BOOST_TEST(node.protocol->divergence() == "");
}

BOOST_AUTO_TEST_CASE(updates_that_arrive_before_the_weights_stay) {
  World world(3, 3);
  for (WorldNode& node : world.nodes) node.store->snapshot_padding = 1'000'000;
  world.start(0, {});
  world.start(1, {"n0"});
  world.publish_all(200ms, 10);
  world.nodes[2].store->lose_weights();
  world.start(2, {"n0", "n1"});
  world.publish_all(20ms, 40);
  const Protocol& joiner = *world.nodes[2].protocol;
  BOOST_TEST(world.run_while(20s, [&] { return joiner.ready_to_train() && world.all_equal(); }));
  BOOST_TEST(joiner.counters().snapshots_installed == 1u);
  BOOST_TEST(joiner.counters().updates_lost == 0u);
}

BOOST_AUTO_TEST_CASE(peers_that_lack_them_do_not_train_with_each_other) {
  World world(3, 4);
  for (std::size_t i : {0u, 1u}) world.nodes[i].store->lose_weights();
  for (std::size_t i : {0u, 1u}) world.start(i, {"n0", "n1", "n2"});
  world.run_for(60s);
  for (std::size_t i : {0u, 1u}) {
    BOOST_TEST(!world.nodes[i].protocol->ready_to_train());
    BOOST_TEST(world.nodes[i].protocol->counters().snapshots_installed == 0u);
    BOOST_TEST(world.nodes[i].protocol->divergence() == "");
    BOOST_TEST(world.nodes[i].protocol->waiting_for() == "waiting for a peer that has the run's weights");
  }
  world.start(2, {"n0"});
  BOOST_TEST(world.run_while(60s, [&] {
    return world.nodes[0].protocol->ready_to_train() && world.nodes[1].protocol->ready_to_train();
  }));
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
