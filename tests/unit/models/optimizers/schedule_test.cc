#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/optimizers/optimizer.h"

namespace rumor::models {

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(it_rises_to_the_peak_and_falls_to_the_floor) {
  const Schedule s{.warmup = 0.1, .floor = 0.02};
  BOOST_TEST(s.factor(0) == 0.02);
  BOOST_TEST(std::abs(s.factor(0.05) - 0.51) < 1e-12);
  BOOST_TEST(s.factor(0.1) == 1.0);
  BOOST_TEST(std::abs(s.factor(0.55) - 0.51) < 1e-12);
  BOOST_TEST(std::abs(s.factor(1) - 0.02) < 1e-12);
  for (int i = 0; i < 1000; ++i) {
    const double here = s.factor(i / 1000.0), next = s.factor((i + 1) / 1000.0);
    BOOST_TEST((i < 100 ? next > here : next < here), "at " << i);
    BOOST_TEST(here >= 0.02 - 1e-12);
    BOOST_TEST(here <= 1.0);
  }
}

BOOST_AUTO_TEST_CASE(it_follows_the_cosine) {
  const Schedule s{.warmup = 0, .floor = 0};
  for (int i = 0; i <= 100; ++i) {
    const double expected = 0.5 * (1 + std::cos(3.14159265358979323846 * i / 100));
    BOOST_TEST(std::abs(s.factor(i / 100.0) - expected) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(progress_outside_the_run_is_clamped) {
  const Schedule s;
  BOOST_TEST(s.factor(-3) == s.factor(0));
  BOOST_TEST(s.factor(7) == s.factor(1));
  BOOST_TEST(s.factor(std::nan("")) == s.factor(0));
  BOOST_TEST(Schedule({.warmup = 1, .floor = 0.5}).factor(1) == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
