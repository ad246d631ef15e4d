#include <boost/test/unit_test.hpp>

#include "runtime/exchange/live_peers.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(a_silent_peer_is_dropped_after_two_seconds) {
  LivePeers live;
  live.heard(test::node(1), TimePoint{0ms});
  live.heard(test::node(2), TimePoint{0ms});
  live.heard(test::node(2), TimePoint{1500ms});
  BOOST_TEST(live.expire(TimePoint{2000ms}).empty());
  const auto silent = live.expire(TimePoint{2001ms});
  BOOST_REQUIRE(silent.size() == 1u);
  BOOST_TEST((silent.front() == test::node(1)));
  BOOST_TEST(live.count() == 1u);
}

BOOST_AUTO_TEST_CASE(the_window_follows_the_slowest_usual_gap) {
  LivePeers live;
  TimePoint now{0ms};
  for (int i = 0; i < 200; ++i) live.heard(test::node(1), now += 1s);  // one update a second
  BOOST_TEST(live.expire(now + 9s).empty());
  BOOST_TEST(live.expire(now + 11s).size() == 1u);
}
