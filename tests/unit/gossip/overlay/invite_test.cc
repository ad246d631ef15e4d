// A node that cannot dial a member asks it, through common neighbours, to dial in its place (PROTOCOL.md 5.10).
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "gossip/overlay/overlay.h"
#include "gossip/wire/wire.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

// Three nodes, all linked but 1 and 2: those have failed to reach each other for so long that they seldom try.
struct Apart {
  World world{3};
  std::vector<TimePoint> dials;  // of 2, to 1

  Apart() {
    world.keep_apart(1, 2);
    world.start_all();
    world.on_dial = [this](std::size_t from, const std::string& address) {
      if (from == 2 && address == "n1") dials.push_back(world.now);
    };
    world.run_for(2h);
    // Node 1 still asks for dials now and then. Shortly after one of these, node 2 would follow no other invitation.
    while (world.now - dials.back() <= Overlay::invited_interval) world.run_for(1s);
  }
  const NodeId& id(std::size_t i) const { return world.nodes[i].id; }
  // Says so to `to` in the name of 1, as an invitation of `from`, and sees how often 2 has dialled at once.
  std::size_t dialled_at_once(std::size_t to, const NodeId& from) {
    world.run_for(1s);
    dials.clear();
    world.inject(1, to, encode(Invite{id(2), from}));
    world.run_for(100ms);
    return dials.size();
  }
};

std::ptrdiff_t invitations(World& world, std::size_t i) {
  return std::count(world.sent_to(i).begin(), world.sent_to(i).end(), static_cast<std::uint8_t>(FrameType::invite));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(invite)

BOOST_AUTO_TEST_CASE(who_is_invited_dials_at_once_but_not_all_the_time) {
  Apart apart;
  BOOST_TEST(apart.dialled_at_once(0, apart.id(1)) == 1u);
  BOOST_TEST(apart.dialled_at_once(0, apart.id(1)) == 0u);
  apart.world.run_for(Overlay::invited_interval);
  BOOST_TEST(apart.dialled_at_once(0, apart.id(1)) == 1u);
}

BOOST_AUTO_TEST_CASE(only_the_inviter_s_own_word_is_passed_on) {
  Apart apart;
  BOOST_TEST(apart.dialled_at_once(0, apart.id(0)) == 0u);
  const std::ptrdiff_t before = invitations(apart.world, 2);
  BOOST_TEST(apart.dialled_at_once(0, NodeId{}) == 0u);
  BOOST_TEST(invitations(apart.world, 2) == before);
}

BOOST_AUTO_TEST_CASE(a_flood_of_invitations_goes_no_further) {
  Apart apart;
  const std::ptrdiff_t before = invitations(apart.world, 2);
  for (int i = 0; i < 1000; ++i) apart.world.inject(1, 0, encode(Invite{apart.id(2), apart.id(1)}));
  apart.world.run_for(100ms);
  BOOST_TEST(invitations(apart.world, 2) == before + 1);
  BOOST_TEST(apart.world.nodes[0].protocol->peers().size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_stranger_that_invites_is_not_dialled) {
  Apart apart;
  std::vector<std::string> dialled;
  apart.world.on_dial = [&](std::size_t from, const std::string& address) {
    if (from == 2) dialled.push_back(address);
  };
  apart.world.inject(0, 2, encode(Invite{apart.id(2), NodeId{}}));
  apart.world.run_for(100ms);
  BOOST_TEST(dialled.empty());
}

// 2 can be dialled by nobody, and had no way to 1 for two hours. Then it has one, and 1 does not wait for it to notice.
BOOST_AUTO_TEST_CASE(a_node_that_cannot_be_dialled_comes_when_it_is_called) {
  World world(3);
  bool barred = true;
  world.cannot_dial = [&](std::size_t, std::size_t to) { return to == 2 || (barred && to == 1); };
  world.start(0, {});
  world.start(1, {"n0"});
  world.start(2, {"n0"});
  world.run_for(2h);
  BOOST_TEST(world.link_count() == 2u);
  BOOST_TEST(invitations(world, 2) > 0);
  barred = false;
  TimePoint called = never, came = never;
  world.on_dial = [&](std::size_t from, const std::string& address) {
    if (from == 1 && address == "n2" && called == never) called = world.now;
    if (from == 2 && address == "n1" && came == never) came = world.now;
  };
  BOOST_TEST(world.run_while(8min, [&] { return world.link_count() == 3; }));
  BOOST_TEST((called != never && came <= called + 100ms));
}

BOOST_AUTO_TEST_CASE(who_has_links_enough_neither_invites_nor_comes) {
  World world(40, 3);
  world.check = false;
  world.start_all();
  world.run_for(60s);
  const std::uint64_t frames = world.frames();
  std::size_t linked = 0;
  while (world.nodes[linked].protocol->peers().size() < limits::links_high && linked + 1 < world.nodes.size()) ++linked;
  BOOST_REQUIRE(world.nodes[linked].protocol->peers().size() == limits::links_high);
  const NodeId full = world.nodes[linked].id;
  for (std::size_t i = 0; i < world.nodes.size(); ++i) BOOST_TEST(invitations(world, i) == 0);
  // Those that are not linked to it ask their neighbours.
  std::size_t dials = 0;
  world.on_dial = [&](std::size_t from, const std::string&) { dials += from == linked ? 1u : 0u; };
  for (std::size_t i = 0; i < world.nodes.size(); ++i)
    for (std::size_t to = 0; to < world.nodes.size(); ++to)
      if (i != linked && to != linked) world.inject(i, to, encode(Invite{full, world.nodes[i].id}));
  world.run_for(1s);
  BOOST_TEST(invitations(world, linked) > 0);
  BOOST_TEST(world.frames() > frames);
  BOOST_TEST(dials == 0u);
}

BOOST_AUTO_TEST_CASE(neighbours_try_whether_one_can_be_dialled) {
  World world(4);
  world.cannot_dial = [](std::size_t, std::size_t to) { return to == 3; };
  world.start_all();
  world.run_for(2min);
  BOOST_REQUIRE(world.link_count() == 6u);
  for (std::size_t i = 0; i < 4; ++i) {
    const TimePoint asked = world.now;
    std::size_t dials = 0;
    world.on_dial = [&](std::size_t from, const std::string& to) {
      if (from != i && to == world.name(i)) ++dials;
    };
    world.ask_to_be_dialled(i);
    world.run_for(200ms);
    BOOST_TEST(dials == 3u);
    const Reach& reach = world.nodes[i].protocol->reach();
    BOOST_TEST((reach.asked_at == asked));
    BOOST_TEST(reach.by.has_value() == (i != 3));
    BOOST_TEST((reach.at >= asked) == (i != 3));
    world.ask_to_be_dialled(i);  // so soon again nobody dials
    world.run_for(200ms);
    BOOST_TEST(dials == 3u);
  }
  for (const WorldNode& node : world.nodes)
    for (const PeerInfo& peer : node.protocol->peers()) BOOST_TEST((peer.age > 5s), "its links are what they were");
  BOOST_TEST(world.link_count() == 6u);
}

// A dial back is for its node, to which we are linked: well or not, it says nothing of how we fare with its address.
BOOST_AUTO_TEST_CASE(a_dial_back_counts_for_nothing_else) {
  for (const bool vain : {false, true}) {
    World world(2);
    bool closed = vain;
    world.cannot_dial = [&](std::size_t, std::size_t to) { return closed && to == 1; };
    world.start(0, {});
    world.start(1, {"n0"});
    world.run_for(30s);
    for (int i = 0; i < 12; ++i) {
      world.ask_to_be_dialled(1);
      world.run_for(Overlay::invited_interval);
    }
    BOOST_TEST(world.nodes[1].protocol->reach().by.has_value() == !vain);
    // Now it is missed, and tried for the first time.
    world.cannot_dial = [&](std::size_t, std::size_t to) { return closed || to == 0; };
    closed = true;
    world.cut_between(0, 1);
    world.run_for(2s);
    closed = false;
    BOOST_TEST(world.run_while(10s, [&] { return world.link_count() == 1; }));
  }
}

// As behind a router: one address for its own network, one for all others.
BOOST_AUTO_TEST_CASE(a_dial_back_tries_every_address) {
  World world(2);
  world.start_all();
  world.run_for(10s);
  Outbox ignored;
  world.nodes[1].protocol->set_addresses({"dead:1", "dead:2", "n1"}, world.now, ignored);
  world.run_for(1s);
  std::vector<std::string> dialled;
  world.on_dial = [&](std::size_t, const std::string& to) { dialled.push_back(to); };
  world.ask_to_be_dialled(1);
  world.run_for(200ms);
  BOOST_TEST(dialled == (std::vector<std::string>{"dead:1", "dead:2", "n1"}), boost::test_tools::per_element());
  BOOST_TEST((world.nodes[1].protocol->reach().by == world.nodes[0].id));
}

BOOST_AUTO_TEST_CASE(one_s_own_dial_reaches_nobody) {
  World world(1);
  world.start(0, {});
  Outbox ignored;
  world.nodes[0].protocol->on_link_up({LinkId{7}, world.nodes[0].id, false, "here"}, world.now, ignored);
  BOOST_TEST(!world.nodes[0].protocol->reach().by);
}

BOOST_AUTO_TEST_CASE(alone_nobody_is_asked) {
  World world(1);
  world.start(0, {});
  world.ask_to_be_dialled(0);
  BOOST_TEST(!world.nodes[0].protocol->reach().asked_at);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
