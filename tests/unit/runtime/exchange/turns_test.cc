// Whose turn it is to train, for peers that are all there and for peers that are missing.
#include "runtime/exchange/turns.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

constexpr TurnRules two_at_once{.trainers = 2, .turn_updates = 8};

const NodeId member = test::node(1);

Turns turns_of(std::uint32_t index, std::uint32_t peers, const TurnRules& rules = two_at_once) {
  return {rules, {.shard = index, .shards = peers}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(turns)

BOOST_AUTO_TEST_CASE(all_train_where_none_need_wait) {
  for (const Turns& turns : {turns_of(1, 6, {}), turns_of(1, 2), turns_of(0, 1)}) {
    BOOST_TEST(!turns.on());
    BOOST_TEST((turns.next(4) == 5u));
  }
  BOOST_TEST(turns_of(1, 6, {}).expected() == 6u);
}

BOOST_AUTO_TEST_CASE(groups_share_out_all_peers) {
  std::uint32_t groups_of_size[4] = {};
  for (std::uint32_t peer = 0; peer < 5; ++peer) ++groups_of_size[turns_of(peer, 5).expected()];
  BOOST_TEST(groups_of_size[2] == 4u);  // peers 0 and 3, 1 and 4
  BOOST_TEST(groups_of_size[1] == 1u);
}

// Periods 0 to 7 are of the first group, 8 to 15 of the second, and so on.
BOOST_AUTO_TEST_CASE(groups_follow_each_other) {
  Turns first = turns_of(0, 6), second = turns_of(1, 6), third = turns_of(2, 6);
  BOOST_TEST((first.next(0) == 1u));
  BOOST_TEST(!second.next(0));
  for (Turns* turns : {&first, &second, &third}) {
    BOOST_TEST(!turns->heard(test::node(2), 6, TimePoint{1s}));
    BOOST_TEST(!turns->heard(member, 7, TimePoint{1s}));
  }
  BOOST_TEST((first.next(5) == 7u));  // one that lags ends the turn with the others
  BOOST_TEST(!first.next(7));
  BOOST_TEST((second.next(0) == 8u));
  BOOST_TEST(!third.next(0));
  for (Turns* turns : {&first, &second, &third}) {
    BOOST_TEST(turns->heard(member, 8, TimePoint{2s}));
    BOOST_TEST(!turns->heard(member, 7, TimePoint{2s}));
    BOOST_TEST(!turns->is_current(7));
    BOOST_TEST(turns->is_current(9));
  }
  BOOST_TEST(!first.next(5));
  BOOST_TEST(!first.heard(test::node(2), 9, TimePoint{2s}));
  BOOST_TEST(first.advance(23));
  BOOST_TEST((first.next(7) == 24u));
}

// Nobody of the first two groups is there: the third begins after twice the patience, with the first period of its
// turn.
BOOST_AUTO_TEST_CASE(a_missing_group_is_passed_over) {
  Turns third = turns_of(2, 6);
  third.take_over(0, TimePoint{1s});  // it begins to wait
  BOOST_TEST((third.patience_ends(0) == TimePoint{21s}));
  third.take_over(0, TimePoint{20s});
  BOOST_TEST(!third.next(0));
  third.take_over(0, TimePoint{21s});
  BOOST_TEST((third.next(0) == 16u));
  BOOST_TEST((third.next(16) == 17u));
}

// Four may train at once, and of the first group there is one.
BOOST_AUTO_TEST_CASE(following_groups_train_along_where_peers_are_missing) {
  const auto turn = [](Turns& turns, std::uint64_t number, std::uint8_t trainers) {
    for (std::uint8_t peer = 0; peer < trainers; ++peer) turns.heard(test::node(peer), 8 * number, TimePoint{1s});
    turns.advance(8 * number + 8);
  };
  Turns third = turns_of(2, 16, {.trainers = 4, .turn_updates = 8});
  turn(third, 0, 1);
  BOOST_TEST(!third.is_apart());
  BOOST_TEST((third.next(0) == 8u));  // along with the second group
  turn(third, 1, 3);
  BOOST_TEST(third.expected() == 3u);
  turn(third, 2, 5);
  BOOST_TEST(third.is_apart());
  BOOST_TEST(!third.next(0));
}

BOOST_AUTO_TEST_CASE(a_turn_ends_with_what_was_not_sent) {
  Turns first = turns_of(0, 4, {.trainers = 2, .turn_updates = 48});
  BOOST_TEST(!first.end(45));
  BOOST_TEST(first.end(46));  // the next period is 47
  BOOST_TEST(!first.end(47));
  BOOST_TEST(!turns_of(0, 4, {.trainers = 2, .turn_updates = 4}).end(2));
  BOOST_TEST(!turns_of(0, 2).end(6));
}

// One that trains along with the next group has not waited.
BOOST_AUTO_TEST_CASE(who_has_waited_a_turn_drops_its_residual) {
  const Turns first = turns_of(0, 4, {.trainers = 2, .turn_updates = 8});
  BOOST_TEST(first.drops_residual(7, 16));
  BOOST_TEST(!first.drops_residual(6, 7));
  BOOST_TEST(!first.drops_residual(7, 8));
  BOOST_TEST(!first.drops_residual(0, 16));  // its first step
  BOOST_TEST(!turns_of(0, 2).drops_residual(7, 160));
  BOOST_TEST(!turns_of(0, 4, {.trainers = 2, .turn_updates = 7}).drops_residual(6, 14));  // it has sent no flush
}

BOOST_AUTO_TEST_CASE(slow_groups_are_waited_for_longer) {
  Turns second = turns_of(1, 4);
  for (int update = 0; update < 100; ++update) second.heard(member, 1, TimePoint{update * 5s});
  const TimePoint last{99 * 5s};
  BOOST_TEST((second.patience_ends(0) > last + 90s));  // two peers, of which each needs ten seconds for an update
  BOOST_TEST((second.patience_ends(0) <= last + 100s));
}

BOOST_AUTO_TEST_SUITE_END()
