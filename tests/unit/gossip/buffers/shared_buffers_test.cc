// Buffers of all nodes: everybody ends with the newest of each, and nobody can say them for another.
#include "gossip/buffers/shared_buffers.h"

#include <boost/test/unit_test.hpp>

#include "gossip/trust/signing.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip {

namespace {

using test::run_named;
using test::World;

// "1 2 -" : the first value of each node as node i knows it.
std::string known(const World& world, std::size_t i) {
  const NodeBuffers all = world.nodes[i].protocol->node_buffers();
  std::string text;
  for (const auto& node : world.nodes) {
    const auto found = all.find(node.id);
    text += found == all.end() ? "-" : std::to_string(int{found->second.values.at(0)});
  }
  return text;
}

// The frame of node i with these values, signed by `signer`.
Bytes frame_of(const World& world, std::size_t i, std::uint64_t number, const Bytes& values, const Keys& signer) {
  Buffers message{world.nodes[i].id, number, 10, {}, values};
  message.signature = signer.sign(buffers_message(run_named(1), message));
  return encode(message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_buffers)

BOOST_AUTO_TEST_CASE(everybody_has_the_newest_of_everybody) {
  World world(5, 3);
  world.keep_apart(1, 4);
  world.start_all();
  world.run_for(2s);
  for (std::size_t i = 0; i < 4; ++i) world.share_buffers(i, {static_cast<std::uint8_t>(i + 1)});
  world.run_for(1s);
  for (std::size_t i = 0; i < 5; ++i) BOOST_TEST(known(world, i) == "1234-");
  world.share_buffers(0, {7, 7}, 20);
  world.run_for(1s);
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(known(world, i) == "7234-");
    BOOST_TEST(world.nodes[i].protocol->buffers_hash() == world.nodes[0].protocol->buffers_hash());
  }
  BOOST_TEST(world.nodes[4].protocol->node_buffers().at(world.nodes[0].id).progress == 20u);
}

BOOST_AUTO_TEST_CASE(a_late_joiner_gets_them_and_a_restarted_node_is_believed) {
  World world(3, 5);
  world.start(0, {});
  world.start(1, {world.name(0)});
  world.run_for(1s);
  for (std::uint8_t value = 1; value <= 5; ++value) world.share_buffers(1, {value});
  world.run_for(1s);
  world.start(2, {world.name(0)});
  world.run_for(1s);
  BOOST_TEST(known(world, 2) == "-5-");
  world.kill(1);
  world.run_for(1s);
  world.start(1, {world.name(0)});
  world.share_buffers(1, {9});  // under number 1 again, before anybody can say that five were used
  world.run_for(2s);
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(known(world, i) == "-9-");
}

BOOST_AUTO_TEST_CASE(nobody_says_them_for_another) {
  World world(3, 6);
  world.start_all();
  world.run_for(1s);
  world.share_buffers(1, {1});
  world.run_for(1s);
  // Its own old ones, shown again, change nothing.
  world.inject(2, 0, frame_of(world, 1, 1, {1}, *world.nodes[1].keys));
  world.run_for(100ms);
  BOOST_TEST(known(world, 0) == "-1-");
  BOOST_TEST(world.link_count() == 3u);
  world.inject(2, 0, frame_of(world, 1, 2, {8}, *world.nodes[2].keys));
  world.run_for(100ms);
  BOOST_TEST(known(world, 0) == "-1-");
  BOOST_TEST(world.link_count() == 2u);
}

BOOST_AUTO_TEST_CASE(of_two_under_one_number_all_keep_the_same) {
  World world(3, 7);
  world.start_all();
  world.run_for(1s);
  const Keys& keys = *world.nodes[1].keys;
  world.inject(1, 0, frame_of(world, 1, 1, {3}, keys));
  world.inject(1, 2, frame_of(world, 1, 1, {4}, keys));
  world.run_for(1s);
  BOOST_TEST(known(world, 0) == known(world, 2));
  BOOST_TEST(known(world, 0) != "---");
}

BOOST_AUTO_TEST_CASE(nobody_has_converged_before_they_have_arrived) {
  World world(2, 4);
  world.start_all();
  world.run_for(1s);
  world.set_backlog(0, 1, true);
  world.share_buffers(0, {3});
  world.finish_all();
  world.run_for(2s);
  BOOST_TEST(known(world, 1) == "--");
  for (const auto& node : world.nodes) BOOST_TEST(!node.protocol->converged());
  world.set_backlog(0, 1, false);
  world.run_for(2s);
  BOOST_TEST(known(world, 1) == "3-");
  for (const auto& node : world.nodes) BOOST_TEST(node.protocol->converged());
}

BOOST_AUTO_TEST_CASE(a_link_gets_them_at_a_measured_pace) {
  World world(2, 8);
  world.start_all();
  world.run_for(1s);
  const std::uint64_t before = world.nodes[0].protocol->counters().sent_bytes;
  for (std::uint8_t value = 1; value <= 20; ++value) world.share_buffers(0, Bytes(limits::buffers_bytes_max, value));
  world.run_for(9s);
  const std::uint64_t sent = world.nodes[0].protocol->counters().sent_bytes - before;
  BOOST_TEST(sent < 4 * limits::buffers_bytes_max);  // one at once, the newest when the time for it has come
  BOOST_TEST(known(world, 1) == "20-");
}

BOOST_AUTO_TEST_CASE(a_node_that_speaks_for_many_fills_no_memory) {
  World world(2, 9);
  world.start_all();
  world.run_for(1s);
  world.share_buffers(1, {5});
  for (std::size_t i = 0; i < 400; ++i) {  // each signed well, by a key that was just made
    NodeId made;
    made.bytes.fill(0x33);
    made.bytes[0] = static_cast<std::uint8_t>(i);
    made.bytes[1] = static_cast<std::uint8_t>(i >> 8);
    Bytes values(200'000, 1);
    Buffers message{made, 1, 10, {}, values};
    message.signature = sim::TagKeys(made).sign(buffers_message(run_named(1), message));
    world.inject(1, 0, encode(message));
    world.run_for(500ms);
  }
  std::size_t bytes = 0;
  for (const auto& [node, said] : world.nodes[0].protocol->node_buffers()) bytes += said.values.size();
  BOOST_TEST(bytes <= limits::buffers_all_bytes_max);
  BOOST_TEST(bytes > limits::buffers_all_bytes_max - 400'000);
  BOOST_TEST(known(world, 0) == "-5");
  world.share_buffers(1, {6});
  world.run_for(1s);
  BOOST_TEST(known(world, 0) == "-6");  // of those that it has it takes newer ones
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
