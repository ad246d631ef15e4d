#include "runtime/report/chart_frame.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace rumor;

namespace {

std::vector<std::string> texts_of_ticks(const sim::chart::Axis& axis) {
  std::vector<std::string> out;
  for (const auto& tick : sim::chart::ticks(axis)) out.push_back(tick.text);
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(chart_frame)

BOOST_AUTO_TEST_CASE(an_axis_covers_the_values_that_it_shows) {
  const auto log = sim::chart::fit({0, -1, std::nan(""), 0.01, 100}, true, false);
  BOOST_TEST(log.low == 0.01);
  BOOST_TEST(log.high == 100);
  BOOST_TEST(log.place(1) == 0.5, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(!log.shows(0));
  const auto wider = sim::chart::widened(log, 0.25);
  BOOST_TEST(wider.low == 0.001, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(wider.high == 1000, boost::test_tools::tolerance(1e-12));
  const auto linear = sim::chart::fit({3, 5}, false, true);
  BOOST_TEST(linear.low == 0);
  BOOST_TEST(sim::chart::widened(linear, 0.1).high == 5.5, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(one_value_or_none_still_makes_an_axis) {
  for (const bool log : {false, true})
    for (const std::vector<double>& values : {std::vector<double>{}, {0.5}, {0}, {std::nan("")}}) {
      const auto axis = sim::chart::fit(values, log, false);
      BOOST_TEST((axis.low < axis.high && std::isfinite(axis.low) && std::isfinite(axis.high)));
      BOOST_TEST(!sim::chart::ticks(axis).empty());
    }
}

BOOST_AUTO_TEST_CASE(ticks_are_round_and_powers_of_ten_on_a_logarithmic_axis) {
  const std::pair<sim::chart::Axis, Texts> cases[] = {{{0, 1, false}, {"0", "0.2", "0.4", "0.6", "0.8", "1"}},
                                                      {{0.0002, 8, true}, {"0.001", "0.01", "0.1", "1"}},
                                                      {{0.00002, 0.02, true}, {"10⁻⁴", "0.001", "0.01"}},
                                                      {{30, 30'000, true}, {"100", "1000", "10⁴"}},
                                                      {{0.3, 2.4, true}, {"0.5", "1", "2"}}};
  for (const auto& [axis, want] : cases)
    BOOST_TEST(texts_of_ticks(axis) == want, boost::test_tools::per_element());
  BOOST_TEST(texts_of_ticks({0.31, 0.34, true}).size() >= 3u);  // less than any such step: as on a linear axis
  BOOST_TEST(sim::chart::ticks({1e-20, 1e20, true}).size() <= 8u);
}

BOOST_AUTO_TEST_SUITE_END()
