// The overlay must come off peer by peer, on arrival, by the period of the answer: the detail that decides
// whether the in-flight view helps or harms.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "runtime/base/limits.h"
#include "runtime/exchange/in_flight_view.h"
#include "tests/unit/runtime/support.h"
#include "tests/unit/threads.h"

using namespace rumor;

namespace {

compress::SharedUpdate shared(compress::SparseUpdate update) {
  return std::make_shared<const compress::SparseUpdate>(std::move(update));
}

const compress::SharedUpdate update_a = shared({100, {2, 5}, {0, 1}}), update_b = shared({60, {5, 7}, {0, 0}});

// The values that a view shows when all weights are zero.
std::vector<std::int32_t> overlay(InFlightView& view, std::size_t params = 8) {
  std::vector<float> values(params, 0.0f);
  Serial alone;
  view.refresh(std::vector<std::int32_t>(params, 0), {values, 1}, alone);
  return {values.begin(), values.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_live_peer_adds_half_of_an_own_update) {
  InFlightView view(test::flat_layout(8), 0.5);
  const std::vector<NodeId> live = {test::node(1), test::node(2), test::node(3)};
  view.sent(update_a, 4, live);
  BOOST_TEST(overlay(view) == (std::vector<std::int32_t>{0, 0, 150, 0, 0, -150, 0, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shares_come_off_peer_by_peer_on_arrival) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)});
  view.answered(test::node(1), 4);
  BOOST_TEST(overlay(view)[2] == 50);
  view.answered(test::node(1), 9);  // the same peer again: its share is off already
  BOOST_TEST(overlay(view)[2] == 50);
  view.answered(test::node(3), 9);  // nothing was expected of it
  BOOST_TEST(overlay(view)[2] == 50);
  view.answered(test::node(2), 5);  // a later period answers too
  BOOST_TEST(overlay(view)[2] == 0);
  BOOST_TEST(view.in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(an_overlay_is_lifted_everywhere_and_comes_back) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1)});
  view.sent(update_b, 6, std::vector<NodeId>{test::node(1), test::node(2)});
  const std::vector<std::int32_t> weights = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> plain(weights.begin(), weights.end());
  std::vector<float> values = plain;
  Serial alone;
  view.refresh(weights, {values, 1}, alone);
  const std::vector<float> with_overlay = values;
  BOOST_TEST(with_overlay != plain);
  view.lift(weights, {values, 1}, alone);
  BOOST_TEST(values == plain, boost::test_tools::per_element());
  view.refresh(weights, {values, 1}, alone);
  BOOST_TEST(values == with_overlay, boost::test_tools::per_element());
  view.answered(test::node(1), 4);  // comes off, and the view still shows it
  view.lift(weights, {values, 1}, alone);
  BOOST_TEST(values == plain, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_view_elsewhere_is_told_what_lies_on_top) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)});
  view.sent(update_b, 6, std::vector<NodeId>{test::node(2)});
  BOOST_TEST(view.stale_entries() == 4u);
  std::vector<InFlightView::Expected> expected = view.expected();
  BOOST_TEST(view.stale_entries() == 0u);
  BOOST_TEST_REQUIRE(expected.size() == 2u);
  BOOST_TEST((expected[0].update == update_a && expected[0].peers == 2));
  BOOST_TEST((expected[1].update == update_b && expected[1].peers == 1));
  BOOST_TEST_REQUIRE(expected[0].shares.size() == 1u);
  BOOST_TEST((expected[0].shares[0].step == 50 && expected[0].shares[0].count == 2));
  BOOST_TEST(expected[1].shares[0].step == 30);
  view.answered(test::node(2), 5);  // of both it was expected to do the first
  BOOST_TEST(view.stale_entries() == 2u);
  expected = view.expected();
  BOOST_TEST((expected.size() == 2 && expected[0].peers == 1 && expected[1].peers == 1));
  view.lifted();  // all of it comes back
  BOOST_TEST(view.stale_entries() == 4u);
  view.gone(test::node(1));
  view.gone(test::node(2));
  BOOST_TEST(view.expected().empty());
  BOOST_TEST(view.stale_entries() == 0u);
  BOOST_TEST(overlay(view) == std::vector<std::int32_t>(8, 0), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_earlier_period_answers_nothing) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1)});
  view.sent(update_b, 6, std::vector<NodeId>{test::node(1)});
  view.answered(test::node(1), 3);
  BOOST_TEST(view.in_flight() == 2u);
  view.answered(test::node(1), 5);  // answers period 4, not 6
  BOOST_TEST(view.in_flight() == 1u);
  BOOST_TEST(overlay(view) == (std::vector<std::int32_t>{0, 0, 0, 0, 0, 30, 0, 30}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_peer_already_heard_in_the_period_gets_no_share) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.answered(test::node(1), 4);  // it was quicker
  view.answered(test::node(2), 3);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)});
  BOOST_TEST(overlay(view)[2] == 50);
  view.gone(test::node(1));  // forgotten: a later life of it starts anew
  view.sent(update_a, 5, std::vector<NodeId>{test::node(1)});
  BOOST_TEST(overlay(view)[2] == 100);
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_gone_leaves_no_bias) {
  InFlightView view(test::flat_layout(8), 0.5);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)});
  view.sent(update_b, 5, std::vector<NodeId>{test::node(1), test::node(2)});
  view.answered(test::node(2), 5);
  view.gone(test::node(1));
  BOOST_TEST(overlay(view) == std::vector<std::int32_t>(8, 0), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_overlay_is_exactly_zero_once_all_have_answered) {
  Prng prng(9);
  InFlightView view(test::flat_layout(300), 0.37);
  const std::vector<NodeId> live = {test::node(1), test::node(2), test::node(3), test::node(4),
                                    test::node(5)};
  for (std::uint64_t period = 1; period <= 200; ++period) {
    view.sent(shared(test::random_update(prng, 300, 20)), period, live);
    for (const NodeId& peer : live)
      if (prng.chance(1, 2)) view.answered(peer, period - prng.below(period));
  }
  BOOST_TEST(overlay(view, 300) != std::vector<std::int32_t>(300, 0));
  for (const NodeId& peer : live) view.answered(peer, 200);
  BOOST_TEST(overlay(view, 300) == std::vector<std::int32_t>(300, 0), boost::test_tools::per_element());
}

// Own updates overlap, come and go. The view, refreshed now and then, shows weights plus shares to the last bit.
BOOST_AUTO_TEST_CASE(the_view_shows_the_sum_of_all_shares) {
  struct Own {
    std::uint64_t period;
    compress::SparseUpdate update;
    std::set<NodeId> waiting_for;
  };
  constexpr std::uint32_t params = 40'000;
  Prng prng(11);
  InFlightView view(test::flat_layout(params), 0.5);
  const std::vector<NodeId> live = {test::node(1), test::node(2), test::node(3)};
  std::vector<std::int32_t> weights(params);
  for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.between(-1000, 1000));
  std::vector<float> values(weights.begin(), weights.end());
  std::vector<Own> all;
  for (std::uint64_t period = 1; period <= 60; ++period) {
    all.push_back({period, test::random_update(prng, params, 3000), {live.begin(), live.end()}});
    all.back().update.step = 100;
    view.sent(shared(all.back().update), period, live);
    for (const NodeId& peer : live) {
      if (!prng.chance(1, 3)) continue;
      const std::uint64_t up_to = period - prng.below(std::min<std::uint64_t>(period, 3));
      view.answered(peer, up_to);
      for (Own& own : all)
        if (own.period <= up_to) own.waiting_for.erase(peer);
    }
    if (prng.chance(1, 2)) continue;
    std::vector<std::int32_t> want = weights;
    for (const Own& own : all)
      for (std::size_t e = 0; e < own.update.index.size(); ++e) {
        const std::int32_t share = 50 * static_cast<std::int32_t>(own.waiting_for.size());
        want[own.update.index[e]] += own.update.negative[e] != 0 ? -share : share;
      }
    test::Threads threads(1 + static_cast<unsigned>(period % 4));
    view.refresh(weights, {values, 1}, threads);
    BOOST_TEST_REQUIRE((values == std::vector<float>(want.begin(), want.end())));
  }
}

BOOST_AUTO_TEST_CASE(it_counts_what_a_view_shows_no_longer) {
  InFlightView view(test::flat_layout(8), 0.5);
  std::vector<float> values(8);
  Serial alone;
  const auto refresh = [&] { view.refresh(std::vector<std::int32_t>(8), {values, 1}, alone); };
  BOOST_TEST(view.stale_entries() == 0u);
  view.sent(update_a, 4, std::vector<NodeId>{test::node(1), test::node(2)});
  BOOST_TEST(view.stale_entries() == 2u);
  refresh();
  BOOST_TEST(view.stale_entries() == 0u);
  view.answered(test::node(3), 4);
  BOOST_TEST(view.stale_entries() == 0u);
  view.answered(test::node(1), 4);
  BOOST_TEST(view.stale_entries() == 2u);
  refresh();
  view.lift(std::vector<std::int32_t>(8), {values, 1}, alone);
  BOOST_TEST(view.stale_entries() == 2u);
  refresh();
  view.gone(test::node(2));
  BOOST_TEST(view.stale_entries() == 2u);
  refresh();
  BOOST_TEST(view.stale_entries() == 0u);
}

BOOST_AUTO_TEST_CASE(memory_is_by_entries_and_not_by_parameters) {
  Prng prng(12);
  InFlightView view(test::flat_layout(1'000'000), 0.5);
  BOOST_TEST(view.memory_bytes() == 0u);
  view.sent(shared(test::random_update(prng, 1'000'000, 1000)), 1, std::vector<NodeId>{test::node(1)});
  std::vector<float> values(1'000'000);
  Serial alone;
  view.refresh(std::vector<std::int32_t>(1'000'000), {values, 1}, alone);
  BOOST_TEST(view.memory_bytes() >= 5000u);
  BOOST_TEST(view.memory_bytes() < 100'000u);
}

BOOST_AUTO_TEST_CASE(what_is_in_flight_is_bounded) {
  InFlightView view(test::flat_layout(8), 0.5);
  for (std::uint64_t period = 1; period <= limits::in_flight_max + 50; ++period)
    view.sent(update_a, period, std::vector<NodeId>{test::node(1)});
  BOOST_TEST(view.in_flight() == limits::in_flight_max);
  BOOST_TEST(overlay(view)[2] == static_cast<std::int32_t>(50 * limits::in_flight_max));
}

BOOST_AUTO_TEST_CASE(weight_zero_is_off) {
  InFlightView view(test::flat_layout(8), 0);
  view.sent(update_a, 1, std::vector<NodeId>{test::node(1)});
  BOOST_TEST(view.in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(the_memory_of_an_update_is_counted_in_parts_by_those_who_have_it) {
  Prng prng(5);
  InFlightView view(test::flat_layout(300), 0.5);
  auto update = shared(test::random_update(prng, 300, 20));
  const std::size_t whole = compress::part_bytes(update);
  view.sent(update, 1, std::vector<NodeId>{test::node(1)});
  BOOST_TEST(compress::part_bytes(update) == whole / 2);
  const std::size_t with_another = view.memory_bytes();
  update.reset();
  BOOST_TEST(view.memory_bytes() - with_another == whole - whole / 2);
}

BOOST_AUTO_TEST_CASE(each_tensor_has_its_own_share) {
  const ParamLayout layout = ParamLayout::create({{"a", {3}}, {"b", {2}}, {"c", {1}}}).value();
  InFlightView view(layout, 0.5);
  view.sent(shared({0, {0, 2, 5}, {0, 1, 0}, {8, 0, 100}}), 1, std::vector<NodeId>{test::node(1)});
  BOOST_TEST(overlay(view, 6) == (std::vector<std::int32_t>{4, 0, -4, 0, 0, 50}),
             boost::test_tools::per_element());
  view.answered(test::node(1), 1);
  BOOST_TEST(overlay(view, 6) == std::vector<std::int32_t>(6, 0), boost::test_tools::per_element());
}

namespace {

// Equal peers step on a quadratic of curvature 1, each with a minimum of its own. Their updates arrive `delay` steps
// late. There is one parameter, in grid units.
struct Quadratics {
  std::size_t peers, delay;
  double weight, rate;  // rate: of all peers together; without delay 2 is the limit

  // Root mean square distance of the views from their minima, relative to the first one: the maximum over the last 30
  // of 400 steps.
  double growth(std::int32_t start, const std::vector<std::int32_t>& minima) const {
    std::vector<InFlightView> views(peers, InFlightView(test::flat_layout(1), weight));
    std::vector<std::int32_t> weights(peers, start);
    std::vector<std::vector<std::int32_t>> changes;  // by step and peer
    double first = 0, most = 0;
    for (std::size_t t = 0; t < 400; ++t) {
      changes.emplace_back();
      double all = 0;
      for (std::size_t i = 0; i < peers; ++i) {
        const double off = weights[i] + overlay(views[i], 1)[0] - minima[i];
        all += off * off;
        changes[t].push_back(static_cast<std::int32_t>(std::lround(-rate / static_cast<double>(peers) * off)));
      }
      if (t == 0) first = all;
      if (t >= 370 || all > 1e4 * first) most = std::max(most, all);
      if (all > 1e4 * first) break;
      for (std::size_t i = 0; i < peers; ++i) exchange(views[i], weights[i], i, t, changes);
    }
    return std::sqrt(most / first);
  }

 private:
  void exchange(InFlightView& view, std::int32_t& weights, std::size_t self, std::size_t t,
                const std::vector<std::vector<std::int32_t>>& changes) const {
    const std::int32_t own = changes[t][self];
    std::vector<NodeId> others;
    for (std::size_t j = 0; j < peers; ++j)
      if (j != self) others.push_back(test::node(static_cast<std::uint8_t>(j)));
    weights += own;
    view.sent(shared({std::abs(own), {0}, {static_cast<std::uint8_t>(own < 0)}}), t + 1, others);
    if (t < delay) return;
    for (std::size_t j = 0; j < peers; ++j) {
      if (j == self) continue;
      weights += changes[t - delay][j];
      view.answered(test::node(static_cast<std::uint8_t>(j)), t - delay + 1);
    }
  }
};

}  // namespace

// Why one half (in_flight_view.h): a view has the share s = (1 + weight (N - 1)) / N of the steps in flight. The mean
// of the peers is stable at every delay for s >= 1/2, and their differences are stable for rates below 1 / s.
BOOST_AUTO_TEST_CASE(half_of_what_is_in_flight_is_stable_at_every_delay) {
  constexpr std::int32_t far = 1'000'000;
  const std::vector<std::int32_t> alike = {0, 0, 0, 0}, apart = {far, far, -far, -far};
  const double half = 1.0 / 3;  // s = 1/2 with four peers
  for (const std::size_t delay : {1u, 2u, 3u, 7u, 12u}) {
    BOOST_TEST_CONTEXT("delay " << delay) {
      BOOST_TEST((Quadratics{4, delay, half, 1.9}.growth(far, alike)) < 0.5);
      BOOST_TEST((Quadratics{4, delay, half, 1.9}.growth(0, apart)) < 1.5);
      BOOST_TEST((Quadratics{4, delay, 0.6, 1.9}.growth(0, apart)) > 50);  // s = 0.7, bears 1.43
      BOOST_TEST((Quadratics{4, delay, 0.6, 1.3}.growth(0, apart)) < 1.5);
    }
  }
  BOOST_TEST((Quadratics{4, 7, 0.1, 1.9}.growth(far, alike)) > 50);
  BOOST_TEST((Quadratics{4, 7, 0, 0.5}.growth(far, alike)) > 50);
  BOOST_TEST((Quadratics{4, 7, half, 0.5}.growth(far, alike)) < 0.01);
}
