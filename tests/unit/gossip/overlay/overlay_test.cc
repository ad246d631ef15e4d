// The links that nodes form: seeds, twins, other runs, leaving, retries.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "gossip/links/address_book.h"
#include "gossip/wire/wire.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

BOOST_AUTO_TEST_SUITE(overlay)

BOOST_AUTO_TEST_CASE(alone_without_seeds_trains_at_once) {
  World world(1);
  world.start(0, {});
  BOOST_TEST(world.nodes[0].protocol->ready_to_train());
  BOOST_TEST(world.nodes[0].protocol->converged());
  BOOST_TEST(world.nodes[0].protocol->waiting_for() ==
             "no seed is given and no peer has come yet; training alone");
}

BOOST_AUTO_TEST_CASE(alone_with_dead_seeds_trains_and_says_so) {
  World world(1);
  world.start(0, {"n8", "n9"});
  BOOST_TEST(!world.nodes[0].protocol->ready_to_train());
  BOOST_TEST(world.nodes[0].protocol->waiting_for() == "waiting for a first answer from n8, n9");
  world.run_for(1s);
  BOOST_TEST(world.nodes[0].protocol->ready_to_train());
  BOOST_TEST(
      world.nodes[0].protocol->waiting_for() ==
      "no peer has answered yet (tried n8: no such host, n9: no such host); training alone");
  BOOST_TEST(has_line(world.nodes[0].notes, "seed n8 does not answer: no such host"));
}

BOOST_AUTO_TEST_CASE(a_seed_that_comes_late_is_found) {
  World world(2);
  world.start(0, {"n1"});
  world.run_for(20s);
  BOOST_TEST(world.nodes[0].protocol->peers().empty());
  world.start(1, {});
  BOOST_TEST(world.run_while(40s, [&] { return world.nodes[0].protocol->peers().size() == 1; }));
  BOOST_TEST(world.nodes[0].protocol->waiting_for().empty());
}

BOOST_AUTO_TEST_CASE(waits_grow_and_are_bounded) {
  Prng prng(1);
  Duration longest{0};
  for (std::uint32_t failures = 1; failures < 40; ++failures) {
    const Duration wait = redial_wait(failures, prng);
    const Duration plain = std::min<Duration>(5min, 200ms * (1 << std::min(failures - 1, 11u)));
    BOOST_TEST(wait.count() >= plain.count() / 2);
    BOOST_TEST(wait.count() <= plain.count() * 3 / 2);
    longest = std::max(longest, wait);
  }
  BOOST_TEST(longest.count() > Duration(3min).count());
}

BOOST_AUTO_TEST_CASE(other_run_is_refused_by_name) {
  World world(2);
  world.start(0, {});
  world.start(1, {"n0"}, run_named(2));
  world.run_for(1s);
  const Protocol& stranger = *world.nodes[1].protocol;
  BOOST_TEST(stranger.peers().empty());
  BOOST_TEST(world.nodes[0].protocol->peers().empty());
  BOOST_TEST(stranger.refused_by_run() ==
             "seed n0 trains run \"test\" (01000000), we train \"test\" (02000000): use the same run file, "
             "or other seeds");
  BOOST_TEST(world.nodes[0].protocol->refused_by_run().empty());
  BOOST_TEST(stranger.ready_to_train());
}

BOOST_AUTO_TEST_CASE(one_good_seed_outweighs_a_strange_one) {
  World world(3);
  world.start(0, {}, run_named(2));
  world.start(1, {});
  world.start(2, {"n0", "n1"});
  world.run_for(1s);
  BOOST_TEST(world.nodes[2].protocol->refused_by_run().empty());
  BOOST_TEST(world.nodes[2].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(never_linked_to_itself) {
  World world(2);
  world.start(0, {"n0", "n1"});
  world.start(1, {"n0", "n1"});
  world.run_for(30s);
  for (const WorldNode& node : world.nodes) {
    BOOST_REQUIRE(node.protocol->peers().size() == 1u);
    BOOST_TEST((node.protocol->peers()[0].node != node.id));
    BOOST_TEST(std::count(node.closes.begin(), node.closes.end(), "this is our own address") == 2);  // at both ends
  }
}

BOOST_AUTO_TEST_CASE(twins_are_merged_to_one_link) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(2, seed);
    world.start(0, {"n1"});
    world.start(1, {"n0"});
    world.run_for(10s);
    BOOST_TEST(world.link_count() == 1u);
    BOOST_REQUIRE(world.nodes[0].protocol->peers().size() == 1u);
    BOOST_REQUIRE(world.nodes[1].protocol->peers().size() == 1u);
    world.publish_all(1s, 10);
    world.run_for(2s);
    BOOST_TEST(world.all_equal());
  }
}

BOOST_AUTO_TEST_CASE(everybody_learns_everybody_and_survives_the_seed) {
  World world(6);
  world.start_all();
  world.run_for(5s);
  BOOST_TEST(world.link_count() == 15u);  // full mesh
  BOOST_TEST(world.nodes[5].protocol->known_addresses().size() == 5u);
  world.kill(0);
  world.run_for(1s);
  world.publish_all(1s, 10);
  world.run_for(2s);
  BOOST_TEST(world.all_equal());
  BOOST_TEST(world.link_count() == 10u);
}

BOOST_AUTO_TEST_CASE(a_cut_link_comes_back_at_once) {
  World world(2);
  world.start_all();
  world.run_for(30s);
  world.cut_random_link();
  BOOST_TEST(world.run_while(1s, [&] { return world.nodes[0].protocol->peers().size() == 1; }));
}

BOOST_AUTO_TEST_CASE(leaving_says_goodbye_and_is_not_dialled_again) {
  World world(3);
  world.start_all();
  world.run_for(2s);
  Outbox out;
  world.nodes[2].protocol->leave(world.now, out);
  const bool said = std::any_of(out.begin(), out.end(), [](const Effect& effect) {
    const auto* frame = std::get_if<Send>(&effect);
    return frame != nullptr && frame->frame.head[0] == static_cast<std::uint8_t>(FrameType::bye);
  });
  BOOST_TEST(said);
  BOOST_TEST((world.nodes[2].protocol->next_deadline() == never));
  world.inject(2, 0, encode(Bye{Bye::Code::leaving, "leaving", {}}));
  world.inject(2, 1, encode(Bye{Bye::Code::leaving, "leaving", {}}));
  world.run_for(100ms);
  world.kill(2);
  const std::uint64_t frames = world.frames();
  world.run_for(60s);
  BOOST_TEST(world.nodes[0].protocol->peers().size() == 1u);
  BOOST_TEST(world.nodes[0].protocol->members() == 3u);
  BOOST_TEST(world.nodes[0].protocol->members_here() == 2u);
  BOOST_TEST(world.nodes[0].protocol->lost().empty());
  BOOST_TEST(world.frames() - frames < 120u);
  // It is welcome when it comes back by itself.
  world.start(2, {"n0"});
  world.run_for(3s);
  BOOST_TEST(world.nodes[2].protocol->peers().size() == 2u);
  BOOST_TEST(world.nodes[0].protocol->members_here() == 3u);
  // Without a goodbye it is lost, until it is heard again.
  world.kill(2);
  world.run_for(20s);
  BOOST_TEST((world.nodes[0].protocol->lost() == std::vector{world.nodes[2].id}));
  world.start(2, {"n0"});
  world.run_for(3s);
  BOOST_TEST(world.nodes[0].protocol->lost().empty());
}

BOOST_AUTO_TEST_CASE(malformed_frames_close_their_link_with_a_reason) {
  World world(2);
  world.start_all();
  world.run_for(2s);
  world.inject(0, 1, Bytes{static_cast<std::uint8_t>(FrameType::have), 0xff});
  world.run_for(100ms);
  BOOST_TEST(has_line(world.nodes[1].closes, "malformed frame: frame of type 8"));
  world.run_for(50min);
  BOOST_TEST(world.nodes[1].protocol->peers().empty());  // nor is it linked again so soon
  world.run_for(20min);
  BOOST_TEST(world.nodes[1].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(many_nodes_keep_few_links_and_one_component) {
  World world(60, 9);
  world.check = false;
  world.start_all(1);
  world.run_for(20s);
  for (const WorldNode& node : world.nodes) {
    BOOST_TEST(node.protocol->members() == 60u);
    BOOST_TEST(node.protocol->peers().size() <= 12u);
    BOOST_TEST(node.protocol->peers().size() >= 4u);
  }
  world.publish(7);
  world.run_for(2s);
  BOOST_TEST(world.all_equal());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
