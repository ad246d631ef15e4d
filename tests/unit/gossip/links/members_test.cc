// The member table over days: records are renewed, silent members are forgotten, old records do not bring them back.
#include "gossip/links/members.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "runtime/base/text.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

NodeId member_named(std::uint8_t number) {
  NodeId node;
  node.bytes[0] = number;
  return node;
}

struct OneTable {
  explicit OneTable(std::uint8_t number)
      : keys(member_named(number)), table(member_named(number), run_named(1), keys, {str("n", int{number})}) {}
  sim::TagKeys keys;
  MemberTable table;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(members)

BOOST_AUTO_TEST_CASE(who_is_silent_for_a_week_is_forgotten_until_it_says_something_new) {
  OneTable here(1), there(2), third(3);
  const TimePoint start{};
  const std::uint64_t alone = here.table.hash();
  for (const OneTable* other : {&there, &third})
    BOOST_REQUIRE((here.table.apply(other->table.self(), start) == MemberTable::Learned::changed));
  const PeerRecord old = there.table.self();

  const TimePoint later = start + MemberTable::forget_after;
  here.table.heard(member_named(3), later - 1h);
  here.table.forget(later - 1us);
  BOOST_TEST(here.table.all().size() == 3u);
  here.table.forget(later);
  BOOST_TEST(here.table.find(member_named(2)) == nullptr);
  BOOST_TEST(here.table.find(member_named(3)) != nullptr);
  here.table.check_invariants();

  BOOST_TEST((here.table.apply(old, later) == MemberTable::Learned::nothing));
  there.table.renew_self();
  BOOST_TEST((here.table.apply(there.table.self(), later) == MemberTable::Learned::changed));
  here.table.forget(later + MemberTable::forget_after - 1h);  // only the third: it was heard an hour earlier
  BOOST_TEST(here.table.all().size() == 2u);
  here.table.forget(later + MemberTable::forget_after);
  BOOST_TEST(here.table.all().size() == 1u);  // never ourselves
  BOOST_TEST(here.table.hash() == alone);
}

BOOST_AUTO_TEST_CASE(every_day_a_node_renews_its_record) {
  World world(2);
  world.start_all();
  world.run_for(1s);
  const auto records = [&](std::size_t to) {
    return std::count(world.sent_to(to).begin(), world.sent_to(to).end(), static_cast<std::uint8_t>(FrameType::peers));
  };
  world.run_for(1h);
  const auto first = records(0), second = records(1);
  world.run_for(22h);
  BOOST_TEST(records(0) == first);
  BOOST_TEST(records(1) == second);
  world.run_for(2h);
  BOOST_TEST(records(0) > first);
  BOOST_TEST(records(1) > second);
  BOOST_TEST(world.nodes[0].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
