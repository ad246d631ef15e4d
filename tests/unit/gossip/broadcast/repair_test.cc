// Repair of everything that spreading missed: restarts, partitions, snapshots, histories that can no longer be added,
// divergence.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "gossip/wire/wire.h"
#include "tests/shortened.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

// A node with nothing but its key.
void lose_everything(World& world, std::size_t i) {
  world.kill(i);
  world.nodes[i].store = std::make_unique<FakeStore>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(repair)

BOOST_AUTO_TEST_CASE(a_node_that_comes_back_empty_pulls_the_ranges) {
  World world(4);
  world.start_all();
  world.publish_all(4s, 10);
  world.run_for(4s);
  lose_everything(world, 3);
  world.publish_all(2s, 10);
  world.run_for(1s);
  world.start(3, {"n0"});
  BOOST_TEST(!world.nodes[3].protocol->ready_to_train());
  BOOST_TEST(world.run_while(3s, [&] { return world.nodes[3].protocol->ready_to_train(); }));
  BOOST_TEST(world.nodes[3].store->have().count() >= 120u);
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  BOOST_TEST(world.totals().snapshots_installed == 0u);
  BOOST_TEST(world.totals().updates_lost == 0u);
}

BOOST_AUTO_TEST_CASE(a_late_joiner_takes_a_snapshot_when_that_is_cheaper) {
  World world(3);
  for (WorldNode& node : world.nodes) node.store->snapshot_padding = 600'000;  // three chunks
  world.start(0, {});
  world.start(1, {"n0"});
  world.publish_all(30s, 100);
  world.run_for(30s);
  world.publish_all(5s, 100);
  world.start(2, {"n0", "n1"});
  BOOST_TEST(world.run_while(5s, [&] { return world.nodes[2].protocol->ready_to_train(); }));
  world.run_for(5s);
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  BOOST_TEST(world.nodes[2].protocol->counters().snapshots_installed == 1u);
  BOOST_TEST(world.totals().updates_lost == 0u);
}

BOOST_AUTO_TEST_CASE(a_few_large_updates_are_reason_enough_for_a_snapshot) {
  World world(2);
  world.delay_us_max = 1'000'000;
  for (WorldNode& node : world.nodes) node.store->snapshot_padding = 600'000;
  world.start(0, {});
  for (int u = 0; u < 250; ++u) world.publish(0, 200'000);  // 50 MB
  world.start(1, {"n0"});
  BOOST_TEST(world.run_while(60s, [&] { return world.nodes[1].protocol->ready_to_train() && world.all_equal(); }));
  BOOST_TEST(world.nodes[1].protocol->counters().snapshots_installed == 1u);
  BOOST_TEST(world.nodes[1].protocol->counters().received_bytes < 30'000'000u);
}

// Else a joiner asks for most of a history before it knows that the weights are cheaper, and gets both.
BOOST_AUTO_TEST_CASE(small_first_updates_do_not_hide_that_the_weights_are_cheaper) {
  for (const unsigned small : {0u, 1u, 5u}) {
    if (small > rumor::test::shortened(5)) continue;
    World world(2);
    world.delay_us_max = 100'000;
    for (WorldNode& node : world.nodes) node.store->snapshot_padding = 20'000'000;
    world.start(0, {});
    for (unsigned u = 0; u < small; ++u) world.publish(0, 100);
    for (int u = 0; u < 100; ++u) world.publish(0, 500'000);  // 50 MB
    int asks = 0;
    world.drops = [&](std::size_t, std::size_t, std::uint8_t type) {
      asks += type == static_cast<std::uint8_t>(FrameType::snapshot_ask) ? 1 : 0;
      return false;
    };
    world.start(1, {"n0"});
    BOOST_TEST(world.run_while(60s, [&] { return world.nodes[1].protocol->ready_to_train() && world.all_equal(); }));
    BOOST_TEST(world.nodes[1].protocol->counters().snapshots_installed == 1u);
    BOOST_TEST(asks == 1);  // the donor makes the cut for each
    BOOST_TEST(world.nodes[1].protocol->counters().received_bytes < 24'000'000u);  // and eight updates
  }
}

BOOST_AUTO_TEST_CASE(a_late_joiner_takes_a_snapshot_when_the_log_is_gone) {
  World world(3);
  world.start(0, {});
  world.start(1, {"n0"});
  world.publish_all(2s, 20);
  world.run_for(3s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  world.start(2, {"n0"});
  world.publish_all(2s, 20);
  BOOST_TEST(world.run_while(8s, [&] { return world.all_ready(); }));
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  BOOST_TEST(world.nodes[2].protocol->counters().snapshots_installed == 1u);
  BOOST_TEST(world.totals().updates_lost == 0u);
}

// All have it, one has it in its log: the others are asked in turn until that one is, whichever it is.
BOOST_AUTO_TEST_CASE(an_update_that_one_of_many_neighbours_keeps_is_found) {
  constexpr std::size_t many = 7;
  for (std::size_t keeper = 0; keeper < many; ++keeper) {
    World world(many + 1, keeper + 1);
    std::vector<std::string> seeds;
    for (std::size_t i = 0; i < many; ++i) seeds.push_back(world.name(i));
    for (std::size_t i = 0; i < many; ++i) world.start(i, seeds);
    world.run_for(3s);
    world.publish(0);
    world.run_for(1s);
    BOOST_REQUIRE(world.all_equal());
    for (std::size_t i = 0; i < many; ++i)
      if (i != keeper) world.nodes[i].store->trim_log();
    world.start(many, seeds);
    BOOST_TEST(world.run_while(1s, [&] { return world.all_equal(); }));
  }
}

// A node waits for updates that a provider should push, but not when training has ended and the provider gives nothing.
BOOST_AUTO_TEST_CASE(a_provider_that_is_done_is_not_waited_for) {
  World world(2);
  world.start_all();
  world.publish_all(1s, 10);
  world.run_for(3s);
  bool deaf = true;
  world.drops = [&](std::size_t, std::size_t to, std::uint8_t type) {
    return deaf && to == 1 && type == static_cast<std::uint8_t>(FrameType::data);
  };
  world.publish(0);
  world.run_for(1'100ms);
  BOOST_REQUIRE(!world.all_equal());
  deaf = false;
  world.finish_all();
  BOOST_TEST(world.run_while(1s, [&] { return world.all_equal(); }));
}

BOOST_AUTO_TEST_CASE(both_sides_of_a_partition_keep_what_they_learned) {
  for (const std::size_t count : {6u, 20u}) {
    if (count > rumor::test::shortened(20)) continue;
    BOOST_TEST_CONTEXT("nodes " << count) {
      const std::uint64_t apart_s = rumor::test::shortened(30);
      World world(count, count);
      world.start_all(2);
      world.run_for(5s);
      std::set<std::size_t> side;
      for (std::size_t i = 0; i < count / 2; ++i) side.insert(i);
      world.partition(side);
      world.publish_all(std::chrono::seconds(apart_s), 5);
      world.run_for(std::chrono::seconds(apart_s));
      BOOST_TEST(!world.all_equal());
      world.heal();
      world.publish_all(10s, 5);
      world.run_for(10s);
      BOOST_TEST(world.run_while(90s, [&] { return world.all_equal(); }));
      BOOST_TEST(world.nodes[0].store->have().count() == count * 5 * (apart_s + 10));
      BOOST_TEST(world.totals().updates_lost == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_two_histories_without_logs_the_smaller_yields) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    World world(2, seed);
    world.start(0, {"n1"});
    world.start(1, {"n0"});
    world.run_for(2s);
    world.partition({0});
    for (int i = 0; i < 30; ++i) world.publish(0);
    for (int i = 0; i < 20; ++i) world.publish(1);
    for (WorldNode& node : world.nodes) node.store->trim_log();
    for (int i = 0; i < 5; ++i) world.publish(1);  // these are still in its log
    world.run_for(1s);
    world.heal();
    world.publish_all(20s, 5);
    BOOST_TEST(world.run_while(60s, [&] { return world.now > TimePoint{25s} && world.all_equal(); }));
    world.run_for(12s);
    BOOST_TEST(world.nodes[0].protocol->counters().snapshots_installed == 0u);
    BOOST_TEST(world.nodes[1].protocol->counters().snapshots_installed == 1u);
    BOOST_TEST(world.nodes[1].protocol->counters().updates_lost == 20u);
    BOOST_TEST(has_line(world.nodes[1].notes, "20 updates are lost"));
    BOOST_TEST(world.nodes[0].store->have().count() == 30u + 5u + 200u);
  }
}

BOOST_AUTO_TEST_CASE(equal_histories_without_logs_still_choose_one) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    World world(2, seed);
    world.start(0, {"n1"});
    world.start(1, {"n0"});
    world.run_for(2s);
    world.partition({0});
    for (int i = 0; i < 20; ++i) world.publish(0), world.publish(1);
    for (WorldNode& node : world.nodes) node.store->trim_log();
    const bool first_is_lower =
        world.nodes[0].store->digest().have_hash < world.nodes[1].store->digest().have_hash;
    world.run_for(1s);
    world.heal();
    BOOST_TEST(world.run_while(60s, [&] { return world.all_equal(); }));
    BOOST_TEST(world.totals().snapshots_installed == 1u);
    BOOST_TEST(world.totals().updates_lost == 20u);
    BOOST_TEST(world.nodes[first_is_lower ? 0 : 1].protocol->counters().snapshots_installed == 1u);
  }
}

// Whoever has the greatest id yields to nobody, were it for ids, and so does the other end of the line.
BOOST_AUTO_TEST_CASE(equal_histories_without_logs_choose_one_also_between_nodes_that_are_not_neighbours) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    World world(3, seed);
    std::vector<std::size_t> by_id{0, 1, 2};
    std::sort(by_id.begin(), by_id.end(), [&](auto a, auto b) { return world.nodes[a].id < world.nodes[b].id; });
    const std::size_t middle = by_id[0], left = by_id[1], right = by_id[2];
    world.keep_apart(left, right);
    for (const std::size_t end : {left, right}) {
      world.start(end, {world.name(middle)});
      for (int i = 0; i < 20; ++i) world.publish(end);
      world.nodes[end].store->trim_log();
    }
    world.start(middle, {world.name(left), world.name(right)});
    BOOST_TEST(world.run_while(60s, [&] { return world.all_equal() && world.all_ready(); }));
    BOOST_TEST(world.totals().snapshots_installed <= 3u);
    BOOST_TEST(world.nodes[middle].store->have().count() == 20u);
  }
}

BOOST_AUTO_TEST_CASE(islands_without_logs_become_one) {
  World world(6, 4);
  world.start_all(6);
  world.run_for(3s);
  world.partition({0, 1, 2});
  world.publish_all(5s, 10);
  world.run_for(6s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  world.heal();
  world.publish_all(20s, 5);
  world.run_for(20s);
  BOOST_TEST(world.run_while(120s, [&] { return world.all_equal(); }));
  // One island's history stays, whole.
  BOOST_TEST(world.nodes[0].store->have().count() == 3u * 50u + 6u * 100u);
}

BOOST_AUTO_TEST_CASE(equal_sets_and_other_weights_are_reported) {
  World world(2);
  world.start_all();
  world.publish_all(1s, 10);
  world.run_for(3s);
  BOOST_TEST(world.nodes[0].protocol->divergence().empty());
  world.nodes[1].store->corrupt();
  world.run_for(25s);
  BOOST_TEST(has_line({world.nodes[0].protocol->divergence()},
                      "give other weights at " + world.nodes[1].id.brief()));
  BOOST_TEST(has_line({world.nodes[1].protocol->divergence()}, "this replica is damaged"));
}

BOOST_AUTO_TEST_CASE(an_invalid_update_costs_its_link) {
  World world(2);
  world.start_all();
  world.run_for(1s);
  world.publish(0);
  world.run_for(1s);
  Data forged;
  const Bytes payload{1, 2, 3};
  forged.header.key.seq = 2;
  forged.payload = payload;
  world.inject(0, 1, encode(forged));
  world.run_for(100ms);
  BOOST_TEST(world.nodes[1].protocol->counters().updates_invalid == 1u);
  BOOST_TEST(has_line(world.nodes[1].closes, "sent an invalid update: update 2 of stream"));
  BOOST_TEST(world.nodes[1].store->have().count() == 1u);
}

BOOST_AUTO_TEST_CASE(losses_of_links_do_not_lose_updates) {
  World world(10, 6);
  world.start_all(2);
  world.run_for(3s);
  world.publish_all(10s, 20);
  for (int i = 0; i < 60; ++i) world.at(world.now + 150ms * i, [&] { world.cut_random_link(); });
  world.run_for(10s);
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  const Counters all = world.totals();
  BOOST_TEST(all.updates_received == 10u * 200u * 9u);
  BOOST_TEST(static_cast<double>(all.updates_duplicate) < 0.1 * static_cast<double>(all.updates_received));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
