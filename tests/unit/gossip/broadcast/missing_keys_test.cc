// The table of missing keys: entries, announcers, limits and counts.
#include "gossip/broadcast/missing_keys.h"

#include <boost/test/unit_test.hpp>

#include "gossip/broadcast/state.h"
#include "runtime/base/limits.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/unit/gossip/fake_store.h"

namespace rumor::gossip::test {

namespace {

// A node with links, and a stream of which it lacks everything.
struct LackingNode {
  explicit LackingNode(std::uint64_t links) {
    for (std::uint64_t i = 0; i < links; ++i) {
      Link& link = core.links[LinkId{i}];
      link.id = LinkId{i};
      link.state = Link::State::admitted;
      link.exchange = std::make_unique<BroadcastLink>();
    }
    id.bytes[15] = 7;
    stream = *state.streams.intern(id);
  }
  ~LackingNode() { state.missing.check_invariants(); }

  static Options options() {
    Options made;
    made.self.bytes[0] = 1;
    made.keys = std::make_shared<sim::TagKeys>(made.self);
    return made;
  }
  Link& link(std::uint64_t i) { return core.links.at(LinkId{i}); }
  std::uint64_t brought(std::uint64_t i) { return parts(link(i)).missing.brought; }
  Missing* add(std::uint64_t i, std::uint64_t seq) { return state.missing.add(link(i), {stream, seq}); }

  FakeStore store;
  Core core{options(), store, Prng(1)};
  BroadcastState state{core};
  StreamId id;
  StreamIndex stream = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(missing_keys)

BOOST_AUTO_TEST_CASE(a_key_counts_once_and_for_the_link_that_named_it_first) {
  LackingNode node(6);
  BOOST_TEST((node.state.missing.find({node.stream, 3}) == nullptr));
  for (std::uint64_t i = 0; i < 6; ++i) BOOST_REQUIRE((node.add(i, 3) != nullptr));
  const Missing* entry = node.add(0, 3);
  BOOST_TEST((entry == node.state.missing.find({node.stream, 3})));
  BOOST_TEST(entry->announcers.size() == Missing::announcers_max);  // each once, and no more than these
  BOOST_TEST(node.state.missing.count() == 1u);
  BOOST_TEST(node.brought(0) == 1u);
  BOOST_TEST(node.brought(1) == 0u);
  node.state.missing.drop({node.stream, 3});
  node.state.missing.drop({node.stream, 3});
  BOOST_TEST(node.state.missing.count() == 0u);
  BOOST_TEST(node.brought(0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_link_that_names_too_many_leaves_room_for_others) {
  LackingNode node(2);
  for (std::uint64_t seq = 1; seq <= limits::missing_per_link_max; ++seq) BOOST_REQUIRE((node.add(0, seq) != nullptr));
  BOOST_TEST((node.add(0, limits::missing_per_link_max + 1) == nullptr));
  BOOST_TEST((node.add(0, 1) != nullptr));  // known already
  BOOST_TEST((node.add(1, limits::missing_per_link_max + 1) != nullptr));
  node.state.missing.drop({node.stream, 1});
  BOOST_TEST((node.add(0, limits::missing_per_link_max + 2) != nullptr));
}

BOOST_AUTO_TEST_CASE(keys_that_came_another_way_are_dropped_and_what_is_asked_for_is_left_out) {
  LackingNode node(1);
  for (std::uint64_t seq = 1; seq <= 4; ++seq) node.add(0, seq);
  node.add(0, 2)->asked = LinkId{0};
  BOOST_TEST((node.state.missing.unasked(node.stream) == std::vector<std::uint64_t>{1, 3, 4}));
  node.store.make(node.id, {}, 3, 10);
  node.state.missing.drop_held();
  BOOST_TEST((node.state.missing.unasked(node.stream) == std::vector<std::uint64_t>{1, 4}));
  BOOST_TEST(node.state.missing.count() == 3u);
  BOOST_TEST(node.brought(0) == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
