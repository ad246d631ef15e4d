// The overlay must come off peer by peer, on arrival, by the period of the answer: the detail that decides
// whether the in-flight view helps or harms.
#include <boost/test/unit_test.hpp>

#include "runtime/base/limits.h"
#include "runtime/in_flight_view.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

const compress::SparseUpdate update_a{100, {2, 5}, {0, 1}};
const compress::SparseUpdate update_b{60, {5, 7}, {0, 0}};

std::vector<std::int32_t> overlay(const InFlightView& view) {
  return {view.overlay().begin(), view.overlay().end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_live_peer_adds_half_of_an_own_update) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  const std::vector<NodeId> live = {test::node(1), test::node(2), test::node(3)};
  view.sent(update_a, 4, live, touched);
  BOOST_TEST(overlay(view) == (std::vector<std::int32_t>{0, 0, 150, 0, 0, -150, 0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(touched == (std::vector<std::uint32_t>{2, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shares_come_off_peer_by_peer_on_arrival) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)}, touched);
  view.answered(test::node(1), 4, touched);
  BOOST_TEST(view.overlay()[2] == 50);
  view.answered(test::node(1), 9, touched);  // the same peer again: its share is off already
  BOOST_TEST(view.overlay()[2] == 50);
  view.answered(test::node(3), 9, touched);  // nothing was expected of it
  BOOST_TEST(view.overlay()[2] == 50);
  view.answered(test::node(2), 5, touched);  // a later period answers too
  BOOST_TEST(view.overlay()[2] == 0);
  BOOST_TEST(view.in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(an_earlier_period_answers_nothing) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1)}, touched);
  view.sent(update_b, 6, std::vector<NodeId>{test::node(1)}, touched);
  view.answered(test::node(1), 3, touched);
  BOOST_TEST(view.in_flight() == 2u);
  view.answered(test::node(1), 5, touched);  // answers period 4, not 6
  BOOST_TEST(view.in_flight() == 1u);
  BOOST_TEST(overlay(view) == (std::vector<std::int32_t>{0, 0, 0, 0, 0, 30, 0, 30}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_peer_already_heard_in_the_period_gets_no_share) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  view.answered(test::node(1), 4, touched);  // it was quicker
  view.answered(test::node(2), 3, touched);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)}, touched);
  BOOST_TEST(view.overlay()[2] == 50);
  view.gone(test::node(1), touched);  // forgotten: a later life of it starts anew
  view.sent(update_a, 5, std::vector<NodeId>{test::node(1)}, touched);
  BOOST_TEST(view.overlay()[2] == 100);
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_gone_leaves_no_bias) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)}, touched);
  view.sent(update_b, 5, std::vector<NodeId>{test::node(1), test::node(2)}, touched);
  view.answered(test::node(2), 5, touched);
  view.gone(test::node(1), touched);
  BOOST_TEST(overlay(view) == std::vector<std::int32_t>(8, 0), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_overlay_is_exactly_zero_once_all_have_answered) {
  Prng prng(9);
  InFlightView view(test::flat_layout(300), 0.37);
  std::vector<std::uint32_t> touched;
  const std::vector<NodeId> live = {test::node(1), test::node(2), test::node(3), test::node(4),
                                    test::node(5)};
  for (std::uint64_t period = 1; period <= 200; ++period) {
    view.sent(test::random_update(prng, 300, 20), period, live, touched);
    for (const NodeId& peer : live)
      if (prng.chance(1, 2)) view.answered(peer, period - prng.below(period), touched);
    touched.clear();
  }
  BOOST_TEST(overlay(view) != std::vector<std::int32_t>(300, 0));
  for (const NodeId& peer : live) view.answered(peer, 200, touched);
  BOOST_TEST(overlay(view) == std::vector<std::int32_t>(300, 0), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_in_flight_is_bounded) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<std::uint32_t> touched;
  for (std::uint64_t period = 1; period <= limits::in_flight_max + 50; ++period)
    view.sent(update_a, period, std::vector<NodeId>{test::node(1)}, touched);
  BOOST_TEST(view.in_flight() == limits::in_flight_max);
  BOOST_TEST(view.overlay()[2] == static_cast<std::int32_t>(50 * limits::in_flight_max));
}

BOOST_AUTO_TEST_CASE(weight_zero_is_off) {
  InFlightView view(test::flat_layout(8), 0);
  std::vector<std::uint32_t> touched;
  view.sent(update_a, 1, std::vector<NodeId>{test::node(1)}, touched);
  BOOST_TEST(view.in_flight() == 0u);
  BOOST_TEST(touched.empty());
}

BOOST_AUTO_TEST_CASE(each_tensor_has_its_own_share) {
  const ParamLayout layout = ParamLayout::create({{"a", {3}}, {"b", {2}}, {"c", {1}}}).value();
  InFlightView view(layout, 0.5);
  std::vector<std::uint32_t> touched;
  const compress::SparseUpdate update{0, {0, 2, 5}, {0, 1, 0}, {8, 0, 100}};
  view.sent(update, 1, std::vector<NodeId>{test::node(1)}, touched);
  BOOST_TEST(overlay(view) == (std::vector<std::int32_t>{4, 0, -4, 0, 0, 50}),
             boost::test_tools::per_element());
  view.answered(test::node(1), 1, touched);
  BOOST_TEST(overlay(view) == std::vector<std::int32_t>(6, 0), boost::test_tools::per_element());
}
