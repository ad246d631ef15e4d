// The download of a cut: donors that die, keep silent or help, and what each costs.
#include <boost/test/unit_test.hpp>

#include "gossip/wire/wire.h"
#include "tests/shortened.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

BOOST_AUTO_TEST_SUITE(download)

BOOST_AUTO_TEST_CASE(a_donor_that_dies_is_replaced) {
  World world(4, 11);
  for (WorldNode& node : world.nodes) node.store->snapshot_padding = 4'000'000;
  for (std::size_t i = 0; i < 3; ++i) world.start(i, {"n0", "n1", "n2"});
  world.publish_all(1s, 50);
  world.run_for(3s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  world.start(3, {"n0", "n1", "n2"});
  const auto fetching = [&] { return has_line(world.nodes[3].notes, "downloading the weights"); };
  BOOST_REQUIRE(world.run_while(5s, fetching));
  for (std::size_t i = 0; i < 3; ++i) {
    if (!has_line(world.nodes[3].notes, "downloading the weights from " + world.nodes[i].id.brief()))
      continue;
    world.kill(i);
  }
  BOOST_TEST(world.run_while(10s, [&] { return world.nodes[3].protocol->ready_to_train(); }));
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  BOOST_TEST(world.nodes[3].protocol->counters().snapshots_installed == 1u);
}

// The giver of the manifest is gone, and of the only other donor no answer about that cut ever comes: not a reason to
// wait for ever, for it would give one of its own.
BOOST_AUTO_TEST_CASE(who_keeps_silent_does_not_hold_a_joiner_to_a_cut_that_is_gone) {
  World world(3, 5);
  for (WorldNode& node : world.nodes) node.store->snapshot_padding = 4'000'000;
  for (std::size_t i = 0; i < 2; ++i) world.start(i, {"n0", "n1"});
  world.publish_all(1s, 50);
  world.run_for(3s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  world.drops = [](std::size_t from, std::size_t, std::uint8_t type) {
    return from == 2 && type == static_cast<std::uint8_t>(FrameType::snapshot_join);
  };
  world.start(2, {"n0", "n1"});
  const auto fetching = [&] { return world.nodes[2].store->snapshots().intake() != nullptr; };
  BOOST_REQUIRE(world.run_while(5s, fetching));
  const std::string giver = "downloading the weights from " + world.nodes[0].id.brief();
  world.kill(has_line(world.nodes[2].notes, giver) ? 0 : 1);
  BOOST_TEST(!world.run_while(100s, [&] { return world.nodes[2].protocol->ready_to_train(); }));
  BOOST_TEST(world.run_while(60s, [&] { return world.nodes[2].protocol->ready_to_train(); }));
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
}

// Each kill costs the part that was arriving and nothing else; whoever is left, or comes back, makes the same
// cut.
BOOST_AUTO_TEST_CASE(donors_that_die_at_random_cost_a_chunk_each) {
  constexpr std::size_t snapshot_bytes = 24 << 20;
  World world(4, 12);
  Prng prng(12);
  for (std::size_t i = 0; i < 3; ++i) {
    world.nodes[i].store->snapshot_padding = snapshot_bytes;
    world.start(i, {"n0", "n1", "n2"});
  }
  world.publish_all(1s, 20);
  world.run_for(3s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  std::size_t kills = 0;
  for (std::uint64_t round = 0; round < rumor::test::shortened(12); ++round) {
    world.nodes[3].store = std::make_unique<FakeStore>();
    world.start(3, {"n0", "n1", "n2"});
    std::size_t kills_now = 0;
    const auto counters = [&] { return world.nodes[3].protocol->counters(); };
    const TimePoint end = world.now + 300s;
    while (counters().snapshots_installed == 0 && world.now < end) {
      world.run_for(Duration(static_cast<std::int64_t>(1'000 + prng.below(60'000))));
      if (world.nodes[3].protocol->waiting_for().find("downloading") == std::string::npos) continue;
      const std::size_t donor = prng.below(3);
      if (!world.nodes[donor].up()) continue;
      world.kill(donor);
      ++kills_now;
      world.at(world.now + Duration(static_cast<std::int64_t>(prng.below(200'000))), [&world, donor] {
        if (!world.nodes[donor].up()) world.start(donor, {"n0", "n1", "n2"});
      });
    }
    BOOST_TEST(counters().snapshots_installed == 1u);
    BOOST_TEST(counters().received_bytes < snapshot_bytes + (kills_now + 1) * (1 << 20) + 300'000);
    kills += kills_now;
    BOOST_TEST(world.run_while(30s, [&] { return world.all_equal(); }));
    world.kill(3);
  }
  BOOST_TEST(kills >= rumor::test::shortened(20));
}

// A second donor helps; a joiner that asks for a cut which nobody can make any more gets another.
BOOST_AUTO_TEST_CASE(several_donors_share_the_work) {
  World world(4, 13);
  for (std::size_t i = 0; i < 3; ++i) {
    world.nodes[i].store->snapshot_padding = 12 << 20;
    world.start(i, {"n0", "n1", "n2"});
  }
  world.publish_all(1s, 20);
  world.run_for(3s);
  for (WorldNode& node : world.nodes) node.store->trim_log();
  world.publish_all(4s, 20);  // the cuts go back over what comes from here on
  world.run_for(1s);
  world.start(3, {"n0", "n1", "n2"});
  BOOST_TEST(
      world.run_while(8s, [&] { return world.nodes[3].protocol->counters().snapshots_installed == 1; }));
  std::size_t helped = 0;
  for (std::size_t i = 0; i < 3; ++i) helped += world.nodes[i].store->snapshots_made > 0 ? 1 : 0;
  BOOST_TEST(helped >= 2u);
  BOOST_TEST(world.run_while(10s, [&] { return world.all_equal(); }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
