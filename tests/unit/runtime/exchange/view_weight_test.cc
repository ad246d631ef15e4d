// The weight of the in-flight view follows how far the signs of updates agree, slowly, and the rate follows the weight.
#include "runtime/exchange/view_weight.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

constexpr std::uint32_t size = 600;  // entries of each update, at the positions 0, 1, ...

// Own updates and those of another peer take turns, with so many unlike signs in 100: four of each in a round, and
// the last own one is published.
void exchange(ViewWeight& weight, std::uint32_t unlike_in_100, int rounds) {
  compress::SparseUpdate own{1, {}, {}, {}}, other{1, {}, {}, {}};
  for (std::uint32_t i = 0; i < size; ++i) {
    own.index.push_back(i), other.index.push_back(i);
    own.negative.push_back(i % 2), other.negative.push_back(i % 100 < unlike_in_100 ? 1 - i % 2 : i % 2);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 4; ++k) weight.seen(test::node(1), own), weight.seen(test::node(2), other);
    weight.published();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(view_weight)

BOOST_AUTO_TEST_CASE(it_is_one_half_while_updates_agree) {
  ViewWeight weight(std::nullopt);
  BOOST_TEST(weight.weight() == 0.5);
  BOOST_TEST(!weight.agreement().has_value());
  exchange(weight, 30, 100);
  BOOST_TEST(*weight.agreement() == 0.4, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(weight.weight() == 0.5);
  BOOST_TEST(weight.rate_factor(1000) == 1);  // exactly: the bits of a run do not change
  BOOST_TEST(!weight.is_unlike());
}

BOOST_AUTO_TEST_CASE(it_falls_to_0_in_64ths_where_updates_undo_each_other) {
  ViewWeight weight(std::nullopt);
  exchange(weight, 53, 1);
  BOOST_TEST(*weight.agreement() == -0.06, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(weight.weight() == 31.0 / 64);
  exchange(weight, 53, 30);
  BOOST_TEST(weight.weight() == 1.0 / 64);
  BOOST_TEST(!weight.is_unlike());
  exchange(weight, 53, 10);
  BOOST_TEST(weight.weight() == 0);
  BOOST_TEST(weight.is_unlike());
}

BOOST_AUTO_TEST_CASE(it_comes_back_only_when_updates_clearly_agree) {
  ViewWeight weight(std::nullopt);
  exchange(weight, 60, 40);
  BOOST_TEST(weight.weight() == 0);
  exchange(weight, 45, 60);  // neither alike nor unlike
  BOOST_TEST(weight.weight() == 0);
  exchange(weight, 30, 60);
  BOOST_TEST(weight.weight() == 0.5);
}

BOOST_AUTO_TEST_CASE(without_a_view_late_updates_lower_the_rate) {
  ViewWeight weight(std::nullopt);
  exchange(weight, 60, 16);
  BOOST_TEST(weight.rate_factor(3) == 2.0 / 7, boost::test_tools::tolerance(1e-9));  // half of the view is left
  exchange(weight, 60, 40);
  BOOST_TEST(weight.rate_factor(0) == weight.rate_factor(1));  // the residual delays, too
  BOOST_TEST(weight.rate_factor(3) == 1.0 / 7, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_fixed_weight_stays_and_measures_nothing) {
  ViewWeight weight(0.25);
  exchange(weight, 90, 60);
  BOOST_TEST(weight.weight() == 0.25);
  BOOST_TEST(weight.rate_factor(50) == 1);
  BOOST_TEST(!weight.agreement().has_value());
  BOOST_TEST(!ViewWeight(0).is_unlike());
}

BOOST_AUTO_TEST_CASE(only_positions_in_common_of_different_peers_count) {
  ViewWeight weight(std::nullopt);
  weight.seen(test::node(1), {1, {2, 5, 9}, {0, 1, 0}, {}});
  BOOST_TEST(!weight.agreement().has_value());
  weight.seen(test::node(1), {1, {2, 5, 9}, {0, 1, 0}, {}});  // the same peer
  BOOST_TEST(!weight.agreement().has_value());
  weight.seen(test::node(2), {1, {1, 3, 10}, {0, 0, 0}, {}});
  BOOST_TEST(!weight.agreement().has_value());
  weight.seen(test::node(1), {1, {2, 5, 10}, {0, 1, 1}, {}});
  BOOST_TEST(*weight.agreement() == -1);
  weight.seen(test::node(3), {1, {2, 3, 5, 10}, {0, 0, 1, 1}, {}});
  BOOST_TEST(*weight.agreement() == 0.5, boost::test_tools::tolerance(0.001));
}

BOOST_AUTO_TEST_SUITE_END()
