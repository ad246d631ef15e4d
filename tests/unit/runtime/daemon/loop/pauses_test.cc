#include "runtime/daemon/loop/pauses.h"

#include <boost/test/unit_test.hpp>

using rumor::daemon::Pauses;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(pauses)

BOOST_AUTO_TEST_CASE(the_longest_wait_of_the_last_ten_seconds) {
  const Pauses::Time start{1000s};
  Pauses pauses{0ms};
  BOOST_TEST((pauses.longest(start) == 0ms));
  pauses.ran(start, start + 100ms);  // what came before the first is unknown
  BOOST_TEST((pauses.longest(start + 100ms) == 0ms));
  pauses.ran(start + 140ms, start + 200ms);
  pauses.ran(start + 210ms, start + 300ms);
  BOOST_TEST((pauses.longest(start + 300ms) == 40ms));
  pauses.ran(start + 5s, start + 5s);
  BOOST_TEST((pauses.longest(start + 5s) == 4700ms));
  BOOST_TEST((pauses.longest(start + 14s) == 4700ms));
  BOOST_TEST((pauses.longest(start + 15s) == 0ms));
  pauses.ran(start + 1h, start + 1h);
  BOOST_TEST((pauses.longest(start + 1h) == 1h - 5s));
}

BOOST_AUTO_TEST_CASE(waiting_for_the_period_is_no_pause) {
  const Pauses::Time start{1000s};
  Pauses pauses{100ms};
  pauses.ran(start, start + 10ms);
  pauses.ran(start + 100ms, start + 110ms);
  BOOST_TEST((pauses.longest(start + 110ms) == 0ms));
  pauses.ran(start + 207ms, start + 407ms);  // 7 ms late, then longer than the period
  pauses.ran(start + 410ms, start + 420ms);
  BOOST_TEST((pauses.longest(start + 420ms) == 7ms));
}

BOOST_AUTO_TEST_SUITE_END()
