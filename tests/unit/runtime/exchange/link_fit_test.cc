// A round is as long as the links want it, within bounds.
#include "runtime/exchange/link_fit.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(link_fit)

BOOST_AUTO_TEST_CASE(a_round_lasts_for_the_interval_of_updates) {
  LinkFit fit;
  for (int step = 0; step < 100; ++step) fit.stepped(4, 80ms);  // 20 ms each
  BOOST_TEST(fit.batches(4, 0ms) == 4u);
  BOOST_TEST(fit.batches(4, 70ms) == 4u);
  BOOST_TEST(fit.batches(4, 100ms) == 5u);
  BOOST_TEST(fit.batches(4, 190ms) == 10u);
  BOOST_TEST(fit.batches(4, 60s) == 4 * LinkFit::stretch_max);
  BOOST_TEST((fit.time_of(10) >= 199ms && fit.time_of(10) <= 201ms));
}

BOOST_AUTO_TEST_CASE(before_the_first_step_nothing_is_known) {
  LinkFit fit;
  fit.stepped(0, 1s);  // a step without samples tells nothing
  BOOST_TEST(fit.batches(6, 10s) == 6u);
  BOOST_TEST((fit.time_of(6) == 0s));
}

// A machine that becomes twice as slow makes shorter rounds of the same time.
BOOST_AUTO_TEST_CASE(it_follows_the_speed_of_the_machine) {
  LinkFit fit;
  for (int step = 0; step < 100; ++step) fit.stepped(8, 80ms);
  BOOST_TEST(fit.batches(4, 120ms) == 12u);
  for (int step = 0; step < 100; ++step) fit.stepped(8, 160ms);
  BOOST_TEST(fit.batches(4, 120ms) == 6u);
}

BOOST_AUTO_TEST_SUITE_END()
