// Records of members: they reach everybody, once, and a table that stays different is sent again.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "gossip/wire/wire.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

BOOST_AUTO_TEST_SUITE(records)

BOOST_AUTO_TEST_CASE(a_new_address_is_told_to_everybody_and_dialled) {
  World world(4);
  world.start_all();
  world.run_for(5s);
  Outbox ignored;
  world.nodes[3].protocol->set_addresses({"n3", "nowhere\n:1", "outside:7001"}, world.now, ignored);
  world.run_for(1s);
  const auto knows = [&](std::size_t i) {
    const auto known = world.nodes[i].protocol->known_addresses();
    return std::count_if(known.begin(), known.end(), [&](const KnownAddress& one) {
      return one.node == world.nodes[3].id && (one.address == "n3" || one.address == "outside:7001");
    });
  };
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(knows(i) == 2);
  // The same again is no news.
  const std::uint64_t frames = world.frames();
  world.nodes[3].protocol->set_addresses({"n3", "outside:7001"}, world.now, ignored);
  world.run_for(200ms);
  BOOST_TEST(world.frames() == frames);
  // Its old address is closed, and it dials nobody: the new one is what leads to it.
  std::vector<std::string> dialled;
  world.on_dial = [&](std::size_t, const std::string& address) { dialled.push_back(address); };
  world.kill(3);
  world.run_for(5s);
  BOOST_TEST(has_line(dialled, "outside:7001"));
}

// No PEERS arrives while the third node comes, and the first two never link to it.
BOOST_AUTO_TEST_CASE(a_table_that_stays_different_is_sent_again) {
  World world(3);
  world.start(0, {});
  world.start(1, {"n0"});
  world.run_for(2s);
  world.keep_apart(1, 2);
  world.drops = [](std::size_t, std::size_t, std::uint8_t type) {
    return type == static_cast<std::uint8_t>(FrameType::peers);
  };
  world.start(2, {"n0"});
  world.run_for(2s);
  BOOST_TEST(world.nodes[0].protocol->members() == 3u);
  BOOST_TEST(world.nodes[1].protocol->members() == 2u);
  world.drops = {};
  const auto tables = [&] {
    const std::vector<std::uint8_t>& sent = world.sent_to(1);
    return std::count(sent.begin(), sent.end(), static_cast<std::uint8_t>(FrameType::peers));
  };
  const auto before = tables();
  BOOST_TEST(world.run_while(40s, [&] { return world.nodes[1].protocol->members() == 3; }));
  BOOST_TEST(tables() == before + 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
