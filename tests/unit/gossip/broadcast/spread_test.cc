// Spreading in a steady network: everybody gets everything, once.
#include <boost/test/unit_test.hpp>

#include "runtime/base/limits.h"
#include "tests/shortened.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

// Copies of an update per node that needed one.
double copies(const World& world) {
  const Counters all = world.totals();
  return static_cast<double>(all.updates_received + all.updates_duplicate) /
         static_cast<double>(all.updates_received);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spreading)

BOOST_AUTO_TEST_CASE(everybody_gets_everything_once) {
  for (const std::size_t count : {2u, 5u, 16u, 32u}) {
    if (count > rumor::test::shortened(48)) continue;
    BOOST_TEST_CONTEXT("nodes " << count) {
      World world(count, count);
      world.start_all(2);
      BOOST_TEST(world.run_while(5s, [&] { return world.all_ready(); }));
      world.run_for(5s);
      for (const WorldNode& node : world.nodes) BOOST_TEST(node.protocol->members() == count);
      world.publish_all(4s, 5);
      world.run_for(4500ms);
      BOOST_TEST(world.all_equal());
      BOOST_TEST(world.nodes[0].store->have().count() == count * 20);
      BOOST_TEST(copies(world) <= 1.1);
      BOOST_TEST(world.totals().updates_received == count * 20 * (count - 1));
      for (const WorldNode& node : world.nodes) {
        BOOST_TEST(node.protocol->peers().size() <= limits::links_high);
        BOOST_TEST(node.protocol->peers().size() >= std::min(count - 1, limits::links_low));
        BOOST_TEST(node.protocol->divergence().empty());
      }
    }
  }
}

// Node 0 decides by itself; the others are told what to use.
BOOST_AUTO_TEST_CASE(payloads_are_coded_as_the_link_is_and_come_out_the_same) {
  for (const std::uint64_t delay_us : {300u, 15'000u}) {
    BOOST_TEST_CONTEXT("delay " << delay_us) {
      World world(4, 3);
      world.delay_us_max = delay_us;
      world.start_all(2);
      world.run_for(2s);
      world.publish_all(2s, 10);
      world.run_for(3s);
      BOOST_TEST(world.all_equal());
      BOOST_TEST(world.totals().updates_invalid == 0u);
      bool slow = false;
      for (const PeerInfo& peer : world.nodes[0].protocol->peers()) {
        BOOST_REQUIRE(peer.round_trip.has_value());
        const bool shorter = *peer.round_trip >= 4ms;
        slow = slow || shorter;
        BOOST_TEST((peer.coding == (shorter ? Coding::link : Coding::canonical)));
      }
      BOOST_TEST(slow == (delay_us > 1000));
      const Coding told[] = {Coding::canonical, Coding::canonical, Coding::adapt, Coding::link};
      for (std::size_t i = 1; i < 4; ++i)
        for (const PeerInfo& peer : world.nodes[i].protocol->peers())
          BOOST_TEST((peer.coding == told[i]));
      const Counters linked = world.nodes[3].protocol->counters();
      BOOST_TEST(linked.sent_payload_bytes > linked.sent_canonical_bytes);  // FakeCoder adds a number
    }
  }
}

BOOST_AUTO_TEST_CASE(large_payloads_are_not_coded_anew) {
  World world(2, 4);
  world.delay_us_max = 30'000;
  world.start_all(1);
  world.run_for(2s);
  for (const std::size_t bytes : {limits::recode_bytes_max + 1, limits::recode_bytes_max}) {
    const Counters before = world.nodes[0].protocol->counters();
    world.publish(0, bytes);
    BOOST_TEST(world.run_while(5s, [&] { return world.all_equal(); }));
    const Counters after = world.nodes[0].protocol->counters();
    const std::uint64_t canonical = after.sent_canonical_bytes - before.sent_canonical_bytes;
    BOOST_TEST(canonical == bytes);
    const bool coded = after.sent_payload_bytes - before.sent_payload_bytes > canonical;  // FakeCoder adds a number
    BOOST_TEST(coded == (bytes <= limits::recode_bytes_max));
  }
}

// Compares payload bytes sent: the most by one node over the mean.
BOOST_AUTO_TEST_CASE(nobody_gives_much_more_than_it_takes) {
  World world(24, 5);
  world.start_all(2);
  world.run_for(3s);
  const std::chrono::seconds half(rumor::test::shortened(15));
  world.publish_all(2 * half, 3, 2000);
  world.run_for(half);
  std::vector<std::uint64_t> before;
  for (const WorldNode& node : world.nodes) before.push_back(node.protocol->counters().sent_canonical_bytes);
  world.run_for(half);
  std::uint64_t most = 0, sum = 0;
  for (std::size_t i = 0; i < 24; ++i) {
    const std::uint64_t sent = world.nodes[i].protocol->counters().sent_canonical_bytes - before[i];
    most = std::max(most, sent);
    sum += sent;
  }
  BOOST_TEST(static_cast<double>(most) * 24 < 1.3 * static_cast<double>(sum));
  world.run_for(2s);
  BOOST_TEST(world.all_equal());
  BOOST_TEST(copies(world) <= 1.02);
}

BOOST_AUTO_TEST_CASE(who_has_no_other_provider_is_not_declined_again) {
  World world(12, 6);  // all through one: eleven leaves and a hub
  world.start_all(1);
  world.run_for(3s);
  world.publish_all(20s, 4);
  for (int second = 1; second <= 10; ++second) {
    world.run_for(1s);
    for (std::size_t a = 1; a < 12; ++a)
      for (std::size_t b = a + 1; b < 12; ++b) world.cut_between(a, b);
  }
  world.run_for(10s);
  world.finish_all();
  BOOST_TEST(world.run_while(5s, [&] { return world.all_converged(); }));
  BOOST_TEST(world.totals().updates_received == 12u * 80u * 11u);
}

BOOST_AUTO_TEST_CASE(same_seed_same_trace) {
  const auto trace = [](std::uint64_t seed) {
    World world(9, seed);
    world.start_all();
    world.publish_all(2s, 20);
    world.run_for(4s);
    return world.trace();
  };
  BOOST_TEST(trace(3) == trace(3));
  BOOST_TEST(trace(3) != trace(4));
}

BOOST_AUTO_TEST_CASE(converges_within_milliseconds_of_the_last_update) {
  World world(4);
  world.delay_us_max = 300;
  world.start_all();
  world.publish_all(3s, 50);
  world.run_for(3s);
  BOOST_TEST(!world.all_converged());
  world.finish_all();
  BOOST_TEST(world.run_while(100ms, [&] { return world.all_converged(); }));
}

BOOST_AUTO_TEST_CASE(converges_after_a_late_finisher_and_lost_links) {
  World world(6, 8);
  world.start_all();
  world.run_for(2s);
  world.publish_all(2s, 50);
  for (int i = 0; i < 8; ++i) world.at(world.now + 200ms * i, [&] { world.cut_random_link(); });
  world.run_for(2s);
  world.finish_all();
  BOOST_TEST(world.run_while(3s, [&] { return world.all_converged(); }));
  BOOST_TEST(world.nodes[0].store->have().count() == 6u * 100u);
}

BOOST_AUTO_TEST_CASE(backlogged_links_get_no_pushes_and_catch_up_later) {
  World world(2);
  world.start_all();
  world.run_for(1s);
  world.publish_all(1s, 10);
  world.run_for(2s);
  world.set_backlog(0, 1, true);
  const std::uint64_t before = world.nodes[0].protocol->counters().sent_bytes;
  for (int i = 0; i < 20; ++i) world.publish(0);
  world.run_for(500ms);
  BOOST_TEST(world.nodes[0].protocol->counters().sent_bytes - before < 200u);
  BOOST_TEST(!world.all_equal());
  world.set_backlog(0, 1, false);
  BOOST_TEST(world.run_while(1s, [&] { return world.all_equal(); }));
}

BOOST_AUTO_TEST_CASE(large_updates_go_round_too) {
  World world(5);
  world.start_all();
  world.run_for(1s);
  world.publish_all(2s, 3, 500'000);
  world.run_for(3s);
  BOOST_TEST(world.all_equal());
  BOOST_TEST(copies(world) <= 1.1);
}

BOOST_AUTO_TEST_CASE(a_provider_that_dies_is_replaced) {
  World world(8, 5);
  world.start_all(3);
  world.run_for(2s);
  world.publish_all(6s, 20);
  world.at(world.now + 2s, [&] { world.kill(3); });
  world.at(world.now + 3s, [&] { world.kill(0); });
  world.run_for(6500ms);
  BOOST_TEST(world.run_while(15s, [&] { return world.all_equal(); }));
  BOOST_TEST(copies(world) <= 1.1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
