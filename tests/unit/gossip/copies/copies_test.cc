// Public copies: who holds whose, how links begin and go on, and what an honest peer would not send.
#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/world.h"

using namespace rumor;
using namespace rumor::gossip;
using test::has_line;
using test::World;

namespace {

const Bytes four_bytes = {1, 2, 3, 4};

World averaging(std::size_t nodes, std::size_t neighbours = 4, std::uint64_t seed = 1) {
  World world(nodes, seed);
  world.neighbours = neighbours;
  return world;
}

std::size_t index_of(const World& world, const NodeId& node) {
  for (std::size_t i = 0; i < world.nodes.size(); ++i)
    if (world.nodes[i].id == node) return i;
  BOOST_FAIL("an unknown node");
  return 0;
}

// Each end of each link holds the other's copy to the bit. Returns how many copies that are.
std::size_t check_copies(const World& world) {
  std::size_t held = 0;
  for (const auto& node : world.nodes) {
    if (!node.up()) continue;
    for (const PeerInfo& peer : node.protocol->peers()) {
      const auto& other = world.nodes[index_of(world, peer.node)];
      BOOST_TEST(node.copies->neighbours.at(peer.node).linked);
      BOOST_TEST((node.copies->digest_of(peer.node) == other.store->digest()));
      ++held;
    }
  }
  return held;
}

std::size_t frames_to(World& world, std::size_t node, FrameType type) {
  const auto& sent = world.sent_to(node);
  return static_cast<std::size_t>(std::count(sent.begin(), sent.end(), static_cast<std::uint8_t>(type)));
}

std::size_t all_frames(World& world, FrameType type) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < world.nodes.size(); ++i) count += frames_to(world, i, type);
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(copies)

BOOST_AUTO_TEST_CASE(neighbours_hold_each_others_copies_and_nobody_passes_on) {
  World world = averaging(5);
  world.start_all();
  world.run_for(2s);
  BOOST_TEST(!world.all_ready());  // who comes within three seconds costs no copies
  world.run_for(2s);
  BOOST_TEST(world.all_ready());
  world.publish_all(2s, 20);
  world.run_for(3s);
  BOOST_TEST(check_copies(world) == 20u);  // five nodes, a mesh
  BOOST_TEST(all_frames(world, FrameType::copy) == 0u);
  std::uint64_t made = 0;
  for (const auto& node : world.nodes) {
    BOOST_TEST(node.store->have().streams().size() == 1u);  // its own
    made += node.seq;
  }
  BOOST_TEST(made > 150u);
  BOOST_TEST(all_frames(world, FrameType::data) == 4 * made);
  for (const auto& node : world.nodes)
    for (const PeerInfo& peer : node.protocol->peers()) BOOST_TEST(peer.digest_equal);
}

BOOST_AUTO_TEST_CASE(a_node_has_as_many_links_as_it_wants_neighbours) {
  World world = averaging(40);
  world.start_all(3);
  world.publish_all(40s, 2);
  world.run_for(45s);
  double links = 0;
  std::set<std::size_t> reached{0}, edge{0};
  for (std::size_t i = 0; i < world.nodes.size(); ++i) {
    const std::size_t count = world.nodes[i].protocol->peers().size();
    BOOST_TEST(count >= 2u);
    BOOST_TEST(count <= 6u);
    links += static_cast<double>(count);
  }
  BOOST_TEST(links / 40 > 3.5);
  while (!edge.empty()) {
    const std::size_t i = *edge.begin();
    edge.erase(edge.begin());
    for (const PeerInfo& peer : world.nodes[i].protocol->peers())
      if (const std::size_t k = index_of(world, peer.node); reached.insert(k).second) edge.insert(k);
  }
  BOOST_TEST(reached.size() == 40u);
  BOOST_TEST(check_copies(world) == static_cast<std::size_t>(links));
}

BOOST_AUTO_TEST_CASE(who_joins_begins_with_the_first_copy_it_gets) {
  World world = averaging(4);
  for (auto& node : world.nodes) node.store->snapshot_padding = 200'000;  // some pieces
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(1s);
  world.publish_all(2s, 20);
  world.run_for(3s);
  const auto before = world.nodes[1].store->digest();
  world.start(2, {"n1"});
  BOOST_TEST(!world.nodes[2].protocol->ready_to_train());
  BOOST_TEST(world.run_while(2s, [&] { return world.nodes[2].protocol->ready_to_train(); }));
  BOOST_TEST((world.nodes[2].copies->began_with == world.nodes[1].id));
  BOOST_TEST((world.nodes[2].store->digest() == before));
  BOOST_TEST(frames_to(world, 2, FrameType::copy) >= 4u);
  world.run_for(2s);
  BOOST_TEST(check_copies(world) == 6u);
  world.publish(2);  // what it adds is its own
  world.publish(0);
  world.run_for(1s);
  BOOST_TEST(check_copies(world) == 6u);
}

// It is still waiting for more links when they begin, and holds them from the beginning: no copy will come.
BOOST_AUTO_TEST_CASE(who_greets_others_at_their_beginning_begins_with_them) {
  World world = averaging(3);
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(2s);
  world.start(2, {"n0", "n1"});
  world.run_for(1s);
  BOOST_TEST(!world.nodes[2].protocol->ready_to_train());
  world.publish(0);
  world.run_for(100ms);
  BOOST_TEST(world.nodes[2].protocol->ready_to_train());
  BOOST_TEST(!world.nodes[2].copies->began_with.has_value());
}

BOOST_AUTO_TEST_CASE(a_link_that_comes_back_goes_on_where_it_was) {
  World world = averaging(2);
  world.start_all();
  world.run_for(1s);
  for (int i = 0; i < 20; ++i) world.publish(0);
  world.run_for(1s);
  world.cut_between(0, 1);
  world.publish(0);
  world.publish(1);
  world.run_for(5s);
  BOOST_TEST(check_copies(world) == 2u);
  BOOST_TEST(world.nodes[1].copies->taken == 0u);  // 0 had updates of this process there
  BOOST_TEST(frames_to(world, 1, FrameType::data) == 21u);
}

// Both dial at once: of the two links one goes, and with it must not go what the other keeps.
BOOST_AUTO_TEST_CASE(who_is_linked_twice_is_held_once_and_kept) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    World world = averaging(2, 4, seed);
    world.start(0, {"n1"});
    world.start(1, {"n0"});
    world.publish_all(1s, 100);
    world.run_for(3s);
    BOOST_TEST(check_copies(world) == 2u);
    for (const auto& node : world.nodes) BOOST_TEST(node.protocol->counters().updates_invalid == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_restarted_peer_is_held_anew) {
  World world = averaging(3);
  world.start_all();
  world.run_for(1s);
  world.publish_all(1s, 20);
  world.run_for(2s);
  world.kill(1);
  world.run_for(1s);
  world.start(1, {"n0", "n2"});  // with its store: as from a checkpoint
  BOOST_TEST(world.run_while(3s, [&] { return world.nodes[1].protocol->peers().size() == 2; }));
  BOOST_TEST(world.nodes[1].protocol->ready_to_train());
  world.publish(1);
  world.run_for(2s);
  BOOST_TEST(check_copies(world) == 6u);
  BOOST_TEST(world.nodes[0].copies->taken == 1u);
  BOOST_TEST(!world.nodes[1].copies->began_with.has_value());
}

BOOST_AUTO_TEST_CASE(a_backlogged_link_gets_what_it_missed_or_a_copy) {
  for (const std::size_t updates : {10u, 60u}) {
    World world = averaging(3);
    world.start_all();
    world.run_for(4s);
    world.set_backlog(0, 1, true);
    BOOST_TEST(!world.nodes[0].protocol->may_publish(world.now));  // one of two links
    for (std::size_t i = 0; i < updates; ++i) world.publish(0, 200'000);
    world.run_for(2s);
    BOOST_TEST(world.nodes[1].copies->digest_of(world.nodes[0].id)->updates == 0u);
    BOOST_TEST((world.nodes[2].copies->digest_of(world.nodes[0].id) == world.nodes[0].store->digest()));
    world.set_backlog(0, 1, false);
    BOOST_TEST(world.nodes[0].protocol->may_publish(world.now));
    world.run_for(2s);
    BOOST_TEST(check_copies(world) == 6u);
    BOOST_TEST(world.nodes[1].copies->taken == (updates > 40 ? 1u : 0u));  // 8 MiB are kept
  }
}

BOOST_AUTO_TEST_CASE(links_break_at_random_and_all_is_held_in_the_end) {
  World world = averaging(12, 4, 7);
  world.start_all(2);
  world.run_for(1s);
  world.publish_all(20s, 10);
  for (int cut = 1; cut < 40; ++cut) world.at(TimePoint{1s + cut * 500ms}, [&] { world.cut_random_link(); });
  world.at(TimePoint{6s}, [&] { world.kill(5); });
  world.at(TimePoint{9s}, [&] { world.start(5, {"n0"}); });
  world.run_for(30s);
  BOOST_TEST(check_copies(world) >= 24u);
  for (const auto& node : world.nodes) BOOST_TEST(node.protocol->divergence().empty());
}

BOOST_AUTO_TEST_CASE(peers_converge_when_all_have_finished) {
  World world = averaging(4);
  world.start_all();
  world.run_for(1s);
  world.publish_all(1s, 10);
  world.run_for(2s);
  BOOST_TEST(!world.nodes[0].protocol->converged());
  world.finish_all();
  world.run_for(1s);
  for (const auto& node : world.nodes) BOOST_TEST(node.protocol->converged());
}

BOOST_AUTO_TEST_CASE(other_bits_under_the_same_updates_are_told) {
  World world = averaging(2);
  world.start_all();
  world.run_for(1s);
  world.publish(0);
  world.run_for(2s);
  world.nodes[1].copies->neighbours.at(world.nodes[0].id).copy->corrupt();
  world.run_for(12s);
  BOOST_TEST(world.nodes[1].protocol->divergence().find("public copy") != std::string::npos);
  BOOST_TEST(world.nodes[0].protocol->divergence().empty());
}

BOOST_AUTO_TEST_CASE(what_no_honest_peer_sends_ends_the_link) {
  const std::vector<std::pair<std::string, std::function<Bytes(World&)>>> tries = {
      {"has no place",
       [](World&) {
         return encode(Have{{{0, 1}}});
       }},
      {"has no place", [](World&) { return encode(SnapshotAsk{}); }},
      {"not the next",
       [](World&) {
         return encode(Data{0, {{{}, 9}, {}, {}}, BytesView(four_bytes)});
       }},
      {"another stream",
       [](World&) {
         return encode(Data{1, {{{}, 1}, {}, {}}, BytesView(four_bytes)});
       }},
      {"is not signed",
       [](World&) {
         return encode(Data{0, {{{}, 2}, {}, {}}, BytesView(four_bytes)});
       }},
      {"a second time", [](World&) { return encode(CopyAsk{}); }},
      {"not begun",
       [](World&) {
         return encode(Copy{{}, BytesView(four_bytes), false});
       }},
      {"too long",
       [](World&) {
         return encode(Copy{Copy::Begin{1, 1 << 30}, BytesView(four_bytes), true});
       }},
      {"another length",
       [](World&) {
         return encode(Copy{Copy::Begin{1, 50}, BytesView(four_bytes), false});
       }},
      {"that is none",
       [](World&) {
         return encode(Copy{Copy::Begin{1, 4}, BytesView(four_bytes), false});
       }},
  };
  for (const auto& [why, frame] : tries) {
    World world = averaging(2);
    world.start_all();
    world.run_for(1s);
    world.publish(0);
    world.run_for(1s);
    const auto before = world.nodes[1].copies->digest_of(world.nodes[0].id);
    world.inject(0, 1, frame(world));
    world.run_for(500ms);
    BOOST_TEST(has_line(world.nodes[1].closes, why), why);
    BOOST_TEST((world.nodes[1].copies->digest_of(world.nodes[0].id) == before));
  }
}

// Nobody waits for ever for a copy to begin with.
BOOST_AUTO_TEST_CASE(who_does_not_give_its_copy_is_put_off) {
  World world = averaging(2);
  world.drops = [](std::size_t from, std::size_t, std::uint8_t type) {
    return from == 0 && type == static_cast<std::uint8_t>(FrameType::copy);
  };
  world.start(0, {});
  world.run_for(6s);
  world.publish(0);
  world.start(1, {"n0"});
  world.run_for(30s);
  BOOST_TEST(!world.nodes[1].protocol->ready_to_train());
  world.run_for(60s);
  BOOST_TEST(has_line(world.nodes[1].closes, "does not give its copy"));
  BOOST_TEST(world.nodes[1].protocol->ready_to_train());
}

BOOST_AUTO_TEST_CASE(frames_of_copies_have_no_place_in_a_run_that_broadcasts) {
  for (const Bytes& frame :
       {encode(CopyAsk{}), encode(Copy{Copy::Begin{1, 4}, BytesView(four_bytes), false})}) {
    World world(2);
    world.start_all();
    world.run_for(1s);
    world.inject(0, 1, frame);
    world.run_for(500ms);
    BOOST_TEST(has_line(world.nodes[1].closes, "has no place"));
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_taken_back) {
  World world = averaging(2);
  world.start_all();
  const auto done = world.revoke(0, {world.nodes[1].id, {}, {1, seq_max}, {}});
  BOOST_REQUIRE(!done.ok());
  BOOST_TEST(done.error().text.find("models of their own") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
