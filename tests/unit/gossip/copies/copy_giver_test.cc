// Giving the own public copy: updates while they are kept, otherwise the copy; nothing to a link that is behind.
#include "gossip/copies/copy_giver.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "runtime/base/limits.h"
#include "runtime/sim/world/tag_keys.h"
#include "tests/unit/gossip/copies/fake_copies.h"
#include "tests/unit/gossip/fake_store.h"

namespace rumor::gossip::test {

namespace {

// A node that makes updates, and links that ask for its copy.
struct GivingNode {
  explicit GivingNode(std::uint64_t links) {
    for (std::uint64_t i = 0; i < links; ++i) {
      Link& link = core.links[LinkId{i}];
      link.id = LinkId{i};
      link.state = Link::State::admitted;
      giver.admitted(link);
    }
    core.begin(TimePoint{1s}, out);
  }
  ~GivingNode() { giver.check_invariants(); }

  static Options options() {
    Options made;
    made.self.bytes[0] = 1;
    made.stream.bytes[0] = 2;
    made.keys = std::make_shared<sim::TagKeys>(made.self);
    return made;
  }
  Link& link(std::uint64_t i) { return core.links.at(LinkId{i}); }
  void publish(std::size_t bytes) {
    const StoredUpdate update = store.make(core.options.stream, core.options.self, core.published + 1, bytes);
    ++core.published;
    giver.keep(update);
  }
  TimePoint ask(std::uint64_t i, std::optional<std::uint64_t> seq) {
    giver.on_ask(link(i), {seq});
    return giver.give(link(i));
  }
  // How many frames of a type have left for a link.
  std::ptrdiff_t sent(std::uint64_t i, FrameType type) const {
    return std::count_if(out.begin(), out.end(), [&](const Effect& effect) {
      const Send* frame = std::get_if<Send>(&effect);
      return frame != nullptr && frame->link == LinkId{i} && frame->frame.head[0] == static_cast<std::uint8_t>(type);
    });
  }

  FakeStore store;
  FakeCopies copies{store};
  Core core{options(), store, Prng(1)};
  CopyGiver giver{core, copies};
  Outbox out;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(copy_giver)

BOOST_AUTO_TEST_CASE(a_link_gets_the_updates_that_it_lacks_or_the_copy) {
  GivingNode node(3);
  for (int i = 0; i < 5; ++i) node.publish(100);
  BOOST_TEST((node.ask(0, 0) == never));
  BOOST_TEST(node.sent(0, FrameType::data) == 5);
  node.ask(1, 3);
  BOOST_TEST(node.sent(1, FrameType::data) == 2);
  BOOST_TEST(node.copies.given == 0u);
  node.ask(2, std::nullopt);
  BOOST_TEST(node.sent(2, FrameType::copy) == 1);
  BOOST_TEST(node.sent(2, FrameType::data) == 0);
  node.publish(100);
  for (std::uint64_t i = 0; i < 3; ++i) node.giver.give(node.link(i));
  BOOST_TEST(node.sent(0, FrameType::data) == 6);
  BOOST_TEST(node.sent(2, FrameType::data) == 1);  // from the copy on
}

BOOST_AUTO_TEST_CASE(updates_are_kept_as_long_as_they_are_shorter_than_a_copy) {
  GivingNode node(2);
  for (int i = 0; i < 10; ++i) node.publish(1 << 20);
  node.ask(0, 1);  // the second update is gone
  BOOST_TEST(node.sent(0, FrameType::copy) == 1);
  node.ask(1, 2);
  BOOST_TEST(node.sent(1, FrameType::copy) == 0);
  BOOST_TEST(node.sent(1, FrameType::data) == 1);  // as much as a link may take in one call
  BOOST_TEST((node.giver.give(node.link(1)) == node.core.now + 5ms));
  BOOST_TEST(node.sent(1, FrameType::data) == 2);
}

BOOST_AUTO_TEST_CASE(a_link_that_is_behind_gets_nothing_and_many_of_them_hold_the_origin_back) {
  GivingNode node(3);
  for (std::uint64_t i = 0; i < 3; ++i) node.ask(i, 0);
  BOOST_TEST(node.giver.may_publish());
  node.link(0).backlogged = true;
  BOOST_TEST(node.giver.may_publish());
  node.publish(100);
  node.giver.give(node.link(0));
  BOOST_TEST(node.sent(0, FrameType::data) == 0);
  node.link(1).backlogged = true;
  BOOST_TEST(!node.giver.may_publish());
  node.giver.link_lost(node.link(1));
  node.link(1).state = Link::State::closing;
  BOOST_TEST(!node.giver.may_publish());  // one of two
  node.link(0).backlogged = false;
  node.giver.give(node.link(0));
  BOOST_TEST(node.sent(0, FrameType::data) == 1);
}

BOOST_AUTO_TEST_CASE(links_share_one_copy_and_get_a_new_one_when_it_becomes_another) {
  GivingNode node(2);
  node.publish(100);
  node.ask(0, std::nullopt);
  node.ask(1, std::nullopt);
  BOOST_TEST(node.copies.given == 1u);
  node.core.published = 0;
  node.giver.begin_anew();
  for (std::uint64_t i = 0; i < 2; ++i) node.giver.give(node.link(i));
  BOOST_TEST(node.copies.given == 2u);
  for (std::uint64_t i = 0; i < 2; ++i) BOOST_TEST(node.sent(i, FrameType::copy) == 2);
}

BOOST_AUTO_TEST_CASE(a_link_that_asks_twice_is_closed) {
  GivingNode node(1);
  node.ask(0, 0);
  node.ask(0, 0);
  BOOST_TEST((node.link(0).state == Link::State::closing));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
