// The rules by which an origin limits the damage of staleness, against examples computed by hand from their papers.
#include <boost/test/unit_test.hpp>

#include "runtime/exchange/live_peers.h"
#include "runtime/exchange/staleness.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

// Update `seq` of peer n's stream n.
std::uint64_t hear(Staleness& staleness, std::uint8_t n, std::uint64_t seq, std::uint64_t period,
                   std::uint64_t own_period, std::uint64_t own_updates) {
  return staleness.heard(test::node(n), {test::stream(n), seq}, period, own_period, own_updates);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(staleness)

BOOST_AUTO_TEST_CASE(staleness_is_the_own_periods_that_began_since) {
  Staleness staleness({});
  BOOST_TEST(hear(staleness, 1, 1, 5, 9, 9) == 4u);
  BOOST_TEST(hear(staleness, 1, 2, 9, 9, 9) == 0u);
  BOOST_TEST(hear(staleness, 2, 7, 12, 9, 9) == 0u);  // it is ahead of us
  const auto peers = staleness.peers();
  BOOST_REQUIRE(peers.size() == 2u);
  BOOST_TEST((peers[0].node == test::node(1) && peers[0].stream == test::stream(1)));
  BOOST_TEST(peers[0].updates == 2u);
  BOOST_TEST(peers[0].mean == 4 - 4.0 / 16);
  BOOST_TEST(peers[0].last == 0u);
  BOOST_TEST(peers[0].max == 4u);
  staleness.gone(test::node(1));
  BOOST_TEST(staleness.peers().size() == 1u);
}

// Zhang et al. 2016: alpha_t = alpha / tau for tau > 0, else alpha.
BOOST_AUTO_TEST_CASE(scale_divides_the_rate_by_the_mean_staleness) {
  Staleness off({.brake_from = 0}), one({.scale = 1, .brake_from = 0}), half({.scale = 0.5, .brake_from = 0});
  for (Staleness* s : {&off, &one, &half}) {
    BOOST_TEST(s->rate_factor() == 1);  // nobody has been heard
    hear(*s, 1, 1, 10, 10, 10);         // 0
    BOOST_TEST(s->rate_factor() == 1);
    hear(*s, 2, 1, 2, 10, 10);  // 8, so 4 on the mean
  }
  BOOST_TEST(off.rate_factor() == 1);
  BOOST_TEST(one.rate_factor() == 1.0 / 4, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(half.rate_factor() == 1.0 / 2, boost::test_tools::tolerance(1e-12));
  one.gone(test::node(2));
  BOOST_TEST(one.rate_factor() == 1);
}

// (2 B + 1) / (2 D + 1): with D = 7 and B = 3 seven fifteenths, where the limit of the rate for delayed gradient steps
// of a quadratic, 2 sin(pi / (4 D + 2)), falls from 0.4450 to 0.2091.
BOOST_AUTO_TEST_CASE(the_brake_follows_the_limit_of_stability) {
  Staleness three({.brake_from = 3}), by_default({}), scaled({.scale = 1, .brake_from = 3});
  for (Staleness* s : {&three, &by_default, &scaled}) {
    hear(*s, 1, 1, 7, 10, 10);  // 3
    BOOST_TEST(s->brake() == 1);
    hear(*s, 2, 1, 1, 12, 12);  // 11, so 7 on the mean
    BOOST_TEST(s->mean() == 7);
  }
  const auto near = boost::test_tools::tolerance(1e-12);
  BOOST_TEST(three.rate_factor() == 7.0 / 15, near);
  BOOST_TEST(three.rate_factor() == 0.2091 / 0.4450, boost::test_tools::tolerance(0.01));
  BOOST_TEST(by_default.rate_factor() == 1);
  BOOST_TEST(scaled.rate_factor() == 1.0 / 7, near);  // the stronger of the two, not both
  three.gone(test::node(2));
  BOOST_TEST(three.rate_factor() == 1);
  hear(by_default, 1, 2, 1, 38, 38);  // a sixteenth of the way from 3 to 37
  BOOST_TEST(by_default.brake() == 1);
  hear(by_default, 3, 1, 1, 38, 38);  // 37; the mean is (5.125 + 11 + 37) / 3
  BOOST_TEST(by_default.brake() == 21 / (2 * 53.125 / 3 + 1), near);
}

BOOST_AUTO_TEST_CASE(soft_sync_waits_for_so_many_updates_of_others) {
  Staleness staleness({.soft_sync = 2});
  BOOST_TEST(!staleness.waits(0));  // alone
  for (std::uint8_t n : {1, 2, 3}) hear(staleness, n, 1, 1, 1, 1);
  BOOST_TEST(!staleness.waits(1));
  staleness.step_began();
  BOOST_TEST(staleness.waits(2));
  hear(staleness, 3, 2, 2, 2, 2);
  BOOST_TEST(staleness.waits(2));
  BOOST_TEST(staleness.waits_for(2).find("1 of 2 updates") != std::string::npos);
  hear(staleness, 3, 3, 2, 2, 2);  // two of one peer are two
  BOOST_TEST(!staleness.waits(2));
  BOOST_TEST(staleness.waits_for(2).empty());
  staleness.step_began();
  for (std::uint8_t n : {1, 2, 3}) {
    BOOST_TEST(staleness.waits(3));
    staleness.gone(test::node(n));
  }
  BOOST_TEST(!staleness.waits(3));  // nobody is left to wait for
}

BOOST_AUTO_TEST_CASE(bounded_waits_for_a_new_update_of_everyone) {
  Staleness in_step({.staleness_bound = 1}), behind({.staleness_bound = 3});
  for (Staleness* s : {&in_step, &behind}) {
    hear(*s, 1, 10, 5, 5, 0);
    hear(*s, 2, 99, 7, 5, 0);
    BOOST_TEST(!s->waits(0));  // nothing of ours has left
    s->published(7);
  }
  BOOST_TEST(in_step.waits(1));
  BOOST_TEST(in_step.waits_for(1).find(test::node(1).brief() + ": its newest is 2 updates behind") !=
             std::string::npos);
  BOOST_TEST(!behind.waits(1));
  behind.published(8);
  BOOST_TEST(behind.waits(1));
  hear(in_step, 1, 9, 4, 7, 1);  // an older one came late
  BOOST_TEST(in_step.waits(1));
  hear(in_step, 1, 11, 7, 7, 1);
  BOOST_TEST(!in_step.waits(1));
  behind.gone(test::node(1));
  BOOST_TEST(!behind.waits(1));
}

// Ho et al. 2013: a worker at clock c may go on while the slowest has reached c - s.
BOOST_AUTO_TEST_CASE(steps_ahead_waits_for_the_slowest) {
  Staleness staleness({.steps_ahead = 3});
  hear(staleness, 1, 10, 1, 1, 100);  // they meet: 10 there, 100 here
  hear(staleness, 2, 50, 1, 1, 100);
  BOOST_TEST(!staleness.waits(103));
  BOOST_TEST(staleness.waits(104));
  hear(staleness, 2, 55, 1, 1, 104);
  BOOST_TEST(staleness.waits(104));
  BOOST_TEST(staleness.waits_for(104).find(test::node(1).brief() + " to catch up: we are 4 updates ahead") !=
             std::string::npos);
  hear(staleness, 1, 11, 1, 1, 104);
  BOOST_TEST(!staleness.waits(104));
  BOOST_TEST(staleness.waits(105));
  hear(staleness, 1, 9, 1, 1, 105);  // an old one, late: clocks do not go back
  BOOST_TEST(staleness.waits(105));
  staleness.gone(test::node(1));
  BOOST_TEST(!staleness.waits(105));
}

BOOST_AUTO_TEST_CASE(clocks_begin_anew_with_a_stream_and_with_our_own_first_update) {
  Staleness staleness({.steps_ahead = 2});
  for (std::uint64_t seq = 1; seq <= 500; ++seq) hear(staleness, 1, seq, 1, 0, 0);  // its history
  BOOST_TEST(!staleness.waits(2));
  BOOST_TEST(staleness.waits(3));
  staleness.heard(test::node(1), {test::stream(9), 1}, 1, 3, 3);  // it has restarted
  BOOST_TEST(!staleness.waits(5));
  BOOST_TEST(staleness.waits(6));
  BOOST_TEST(staleness.peers()[0].updates == 1u);
}

BOOST_AUTO_TEST_CASE(the_next_expiry_is_when_the_first_peer_is_dropped) {
  LivePeers live;
  BOOST_TEST((live.next_expiry() == never));
  const TimePoint start{1s};
  live.heard(test::node(1), start);
  live.heard(test::node(2), start + 500ms);
  const TimePoint at = live.next_expiry();
  BOOST_TEST(live.expire(at - Duration{1}).empty());
  BOOST_TEST((live.expire(at) == std::vector<NodeId>{test::node(1)}));
}

BOOST_AUTO_TEST_SUITE_END()
