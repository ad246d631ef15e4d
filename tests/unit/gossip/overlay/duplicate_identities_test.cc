// Two processes with one key: each of them, and third parties, notice; restarts are not taken for them.
#include <boost/test/unit_test.hpp>

#include "gossip/overlay/duplicate_identities.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

BOOST_AUTO_TEST_SUITE(duplicate_identities)

namespace {

// Node 0, and two hosts with one key: 1 began before 2, by their clocks.
struct Clones {
  World world;

  explicit Clones(std::uint64_t seed = 1) : world(3, seed) {
    world.nodes[2].id = world.nodes[1].id;
    world.nodes[2].keys = world.nodes[1].keys;
    world.start(0, {});
  }
  void start(std::size_t i, std::vector<std::string> seeds) {
    world.began = i;
    world.start(i, std::move(seeds));
  }
  const Protocol& protocol(std::size_t i) { return *world.nodes[i].protocol; }
  std::string trouble(std::size_t i) { return protocol(i).identity_trouble(); }
  bool says(std::size_t i, const std::string& part) { return has_line(world.nodes[i].notes, part); }
  void check_second_gives_way() {
    BOOST_TEST(protocol(2).superseded().find("another process runs at n1 with the key of this peer") == 0u);
    BOOST_TEST(protocol(2).superseded().find("began before it: this one ends") != std::string::npos);
    BOOST_TEST(protocol(2).superseded().find("delete identity.pem") != std::string::npos);
    BOOST_TEST(protocol(1).superseded().empty());
    BOOST_TEST(trouble(1).find("another process runs at n2 with the key of this peer") == 0u);
    BOOST_TEST(says(1, "It began later and has to end"));
    BOOST_TEST(!says(2, "It began later"));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_one_that_began_later_gives_way_whichever_dials) {
  for (const bool later_dials : {true, false}) {
    Clones clones;
    clones.start(1, {later_dials ? "n0" : "n2"});
    clones.world.run_for(1s);
    clones.start(2, {later_dials ? "n1" : "n0"});
    clones.world.run_for(30s);
    clones.check_second_gives_way();
  }
}

BOOST_AUTO_TEST_CASE(a_record_of_ones_own_node_shows_where_the_other_is) {
  Clones clones;
  clones.start(1, {"n0"});
  clones.world.run_for(5s);
  clones.start(2, {"n0"});
  clones.world.run_for(5s);
  clones.check_second_gives_way();
}

void check_that_a_neighbour_tells_both(std::uint64_t seed) {
  Clones clones(seed);
  World& world = clones.world;
  world.keep_apart(1, 2);
  clones.start(1, {"n0"});
  clones.start(2, {"n0"});
  world.publish_all(20s, 5);
  world.run_for(20s);
  BOOST_TEST(clones.says(0, "two processes run with the key of peer"));
  BOOST_TEST(clones.trouble(0).find("at n") != std::string::npos);
  for (const std::size_t i : {1u, 2u}) {
    BOOST_TEST(clones.says(i, "says: two processes run with the key of peer"), "node " << i << ", seed " << seed);
    BOOST_TEST(clones.trouble(i).find("delete identity.pem") != std::string::npos);
    BOOST_TEST(clones.protocol(i).superseded().empty());  // a neighbour's word is no proof
  }
  world.run_for(DuplicateIdentities::shown_for);
  world.kill(2);
  world.run_for(60s);
  BOOST_TEST(world.nodes[0].store->have().missing_from(world.nodes[1].store->have()).count() == 0u);
  BOOST_TEST(world.all_equal());
  world.run_for(DuplicateIdentities::shown_for);
  for (const std::size_t i : {0u, 1u}) BOOST_TEST(clones.trouble(i).empty());
}

BOOST_AUTO_TEST_CASE(a_neighbour_of_both_tells_both_when_they_cannot_meet) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) check_that_a_neighbour_tells_both(seed);
}

// The same state at the same or another address, at once or later, while the old connections still stand.
BOOST_AUTO_TEST_CASE(no_restart_is_taken_for_a_second_process) {
  Clones clones;
  World& world = clones.world;
  Prng prng(5);
  std::size_t up = 1;
  clones.start(up, {"n0"});
  for (int i = 0; i < 60; ++i) {
    world.run_for(Duration(prng.between(0, prng.chance(1, 2) ? 300'000 : 20'000'000)));
    world.kill(up);
    if (prng.chance(1, 2)) world.run_for(Duration(prng.between(0, 100'000)));
    up = 1 + prng.below(2);
    clones.start(up, {"n0", "n1", "n2"});
    BOOST_TEST(clones.trouble(0).empty());
  }
  world.run_for(60s);
  BOOST_TEST(clones.trouble(0).empty());
  BOOST_TEST(clones.trouble(up).empty());
  BOOST_TEST(clones.protocol(up).superseded().empty());
}

// The copy has gone. Neither a lost link of the other process nor its restart brings the accusation back.
BOOST_AUTO_TEST_CASE(the_one_that_is_left_is_not_accused_again) {
  Clones clones;
  World& world = clones.world;
  world.keep_apart(1, 2);
  clones.start(1, {"n0"});
  clones.start(2, {"n0"});
  world.run_for(20s);
  BOOST_TEST(!clones.trouble(0).empty());
  world.kill(2);
  world.run_for(1min);
  const auto accusations = [&] {
    return std::count_if(world.nodes[0].closes.begin(), world.nodes[0].closes.end(),
                         [](const std::string& why) { return why == "another process has its key"; });
  };
  const auto before = accusations();
  for (int i = 0; i < 5; ++i) {
    world.cut_between(0, 1);
    world.run_for(3min);
  }
  BOOST_TEST(clones.trouble(0).empty());
  world.nodes[1].notes.clear();
  world.kill(1);
  clones.start(1, {"n0"});
  world.run_for(1min);
  BOOST_TEST(clones.trouble(0).empty());
  BOOST_TEST(clones.trouble(1).empty());
  BOOST_TEST(accusations() == before);
}

// A router that gives the same process another address.
BOOST_AUTO_TEST_CASE(no_lost_link_is_taken_for_a_second_process) {
  Clones clones;
  clones.start(1, {"n0"});
  for (int i = 0; i < 20; ++i) {
    clones.world.run_for(3s);
    clones.world.cut_between(0, 1);
  }
  BOOST_TEST(clones.trouble(0).empty());
  BOOST_TEST(clones.trouble(1).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
