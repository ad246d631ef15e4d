// The pieces of the virtual world on their own.
#include <boost/test/unit_test.hpp>

#include "runtime/report/svg_chart.h"
#include "runtime/sim/cluster/curve.h"
#include "runtime/sim/cluster/fault_plan.h"
#include "runtime/sim/record/sim_result.h"
#include "runtime/sim/world/delivery.h"
#include "runtime/sim/world/event_queue.h"
#include "runtime/sim/world/network.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(events_come_out_by_time_then_by_order_of_arrival) {
  sim::EventQueue<int> queue;
  queue.push(TimePoint{5us}, 1);
  queue.push(TimePoint{3us}, 2);
  queue.push(TimePoint{5us}, 3);
  queue.push(TimePoint{3us}, 4);
  std::vector<int> order;
  while (!queue.empty()) order.push_back(queue.pop().second);
  BOOST_TEST(order == (std::vector<int>{2, 4, 1, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_frame_costs_latency_and_bandwidth) {
  sim::NetworkModel model{"test", 10ms, 10ms, 0ms, 1'000'000, 2'000'000};
  sim::Network network(model, 3, 1);
  const auto us = [](TimePoint at) { return at.time_since_epoch().count(); };
  // 100 kB: 100 ms up, 10 ms on the way, 50 ms down.
  BOOST_TEST(us(network.reaches(0, 1, 100'000, false, TimePoint{0ms})) == 110'000);
  BOOST_TEST(us(network.arrives(1, 100'000, TimePoint{110ms})) == 160'000);
  // A second one waits for the first on the uplink, and a third, from elsewhere, for it on the downlink.
  BOOST_TEST(us(network.reaches(0, 1, 100'000, false, TimePoint{0ms})) == 210'000);
  BOOST_TEST(us(network.reaches(2, 1, 1000, false, TimePoint{140ms})) == 151'000);
  BOOST_TEST(us(network.arrives(1, 1000, TimePoint{151ms})) == 160'500);
  BOOST_TEST(us(network.arrives(1, 100'000, TimePoint{210ms})) == 260'000);
  BOOST_TEST(network.waiting(0, TimePoint{50ms}) == 150'000u);
  // Another pair is not held up.
  BOOST_TEST(us(network.reaches(1, 2, 1000, false, TimePoint{0ms})) == 11'000);
  BOOST_TEST(us(network.arrives(2, 1000, TimePoint{11ms})) == 11'500);
}

BOOST_AUTO_TEST_CASE(control_goes_before_data_that_waits) {
  sim::Network network({"test", 10ms, 10ms, 0ms, 1'000'000, 2'000'000}, 2, 1);
  const auto us = [](TimePoint at) { return at.time_since_epoch().count(); };
  for (int i = 0; i < 10; ++i) network.reaches(0, 1, 10'000, false, TimePoint{0ms});
  // Half a frame of 10 ms is still to leave, in the mean; then the control of before.
  BOOST_TEST(us(network.reaches(0, 1, 1000, true, TimePoint{0ms})) == 16'000);
  BOOST_TEST(us(network.reaches(0, 1, 1000, true, TimePoint{0ms})) == 17'000);
  BOOST_TEST(us(network.reaches(0, 1, 1000, false, TimePoint{0ms})) == 113'000);
  BOOST_TEST(us(network.reaches(0, 1, 1000, true, TimePoint{500ms})) == 511'000);
}

BOOST_AUTO_TEST_CASE(a_backlog_falls_when_it_was_said_to) {
  for (const std::uint64_t speed : {1'000u, 999'983u, 1'000'000u, 2'500'000u, 12'500'000u, 1'250'000'000u}) {
    sim::Network network({"test", 10ms, 10ms, 0ms, speed, speed}, 2, 1);
    network.reaches(0, 1, 300'001, false, TimePoint{7us});
    for (const std::size_t bytes : {0u, 1u, 999u, 65'536u, 100'000u, 262'144u, 300'000u}) {
      const TimePoint at = network.falls_to(0, bytes);
      BOOST_TEST(network.waiting(0, at) <= bytes);
      BOOST_TEST(network.waiting(0, at - 1us) > bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(who_watches_a_curve_can_stop_a_run_that_stands_still) {
  sim::Curve curve(1000, 10);
  sim::CurvePoint first;
  curve.add(first);
  int told = 0;
  const auto progress = [&](const sim::CurvePoint&, double) { return ++told < 3; };
  std::uint64_t calls = 0;
  while (curve.tell(5, progress) && calls < 1'000'000) ++calls;
  BOOST_TEST(told == 3);
  BOOST_TEST(calls < 20'000u);
}

BOOST_AUTO_TEST_CASE(network_files_are_read_and_refused) {
  const auto good = sim::NetworkModel::parse(
      "latency_ms = [5, 9]\njitter_ms = 1\nup_mbit = 10\ndown_mbit = 20\n", "n.toml");
  BOOST_REQUIRE(good.ok());
  BOOST_TEST(good->up_bytes_per_second == 1'250'000u);
  BOOST_TEST((good->latency_min == 5ms));
  for (const char* bad :
       {"latency = 5\n", "latency_ms = [9, 5]\n", "up_mbit = 0\n", "up_mbit = \"fast\"\n", "[[["}) {
    const auto refused = sim::NetworkModel::parse(bad, "n.toml");
    BOOST_TEST_CONTEXT(bad) BOOST_REQUIRE(!refused.ok());
    BOOST_TEST((refused.error().code == Errc::usage));
  }
  BOOST_TEST(!sim::NetworkModel::preset("moon").ok());
}

BOOST_AUTO_TEST_CASE(fault_files_are_read_and_refused) {
  const auto good = sim::parse_fault_plan(
      "[[fault]]\nkind = \"kill\"\nat_s = 2\nlasts_s = 0.5\nnodes = [1, 1, 2]\nevery_s = 3\n", "f.toml", 3);
  BOOST_REQUIRE(good.ok());
  BOOST_REQUIRE(good->size() == 1u);
  BOOST_TEST(((*good)[0].kind == sim::PlannedFault::Kind::kill));
  BOOST_TEST(((*good)[0].at == 2s && (*good)[0].lasts == 500ms && (*good)[0].every == 3s));
  BOOST_TEST((*good)[0].nodes == (std::vector<std::size_t>{1, 2}), boost::test_tools::per_element());
  const std::pair<const char*, const char*> cases[] = {
      {"", "a list of [[fault]]"},
      {"[fault]\nkind = \"kill\"\n", "a list of [[fault]]"},
      {"[[fault]]\nkind = \"flood\"\n", "kind is one of"},
      {"[[fault]]\nat_s = 1\n", "kind is missing"},
      {"[[fault]]\nkind = \"kill\"\nlasts_s = 1\nnodes = [3]\n", "0 to 2"},
      {"[[fault]]\nkind = \"kill\"\nlasts_s = 1\n", "nodes is missing"},
      {"[[fault]]\nkind = \"kill\"\nnodes = [0]\n", "lasts_s is missing"},
      {"[[fault]]\nkind = \"reset\"\nnodes = [0]\nat_s = -1\n", "at_s wants seconds"},
      {"[[fault]]\nkind = \"partition\"\nlasts_s = 1\nnodes = [0, 1, 2]\n", "parts nobody"},
      {"[[fault]]\nkind = \"kill\"\nlasts_s = 5\nevery_s = 2\nnodes = [0]\n", "longer than lasts_s"},
      {"[[fault]]\nkind = \"kill\"\nwhen = 3\n", "when is not a key"},
      {"[[[", "line 1"}};
  for (const auto& [text, cause] : cases) {
    const auto refused = sim::parse_fault_plan(text, "f.toml", 3);
    BOOST_TEST_CONTEXT(text) {
      BOOST_REQUIRE(!refused.ok());
      BOOST_TEST((refused.error().code == Errc::usage));
      BOOST_TEST(refused.error().text.find(cause) != std::string::npos, refused.error().text);
    }
  }
}

BOOST_AUTO_TEST_CASE(delivery_counts_doubles_and_hops) {
  sim::Delivery delivery(4);
  const UpdateKey key{{}, 1};
  delivery.published(key, 0, TimePoint{0ms});
  delivery.applied(key, 1, 0, TimePoint{10ms});
  delivery.applied(key, 2, 1, TimePoint{30ms});
  delivery.applied(key, 2, 0, TimePoint{40ms});  // twice
  sim::SimResult result;
  delivery.summarize(result);
  BOOST_TEST(result.doubled == 1u);
  BOOST_TEST(result.hops_max == 2);
  BOOST_TEST(result.hops_mean == 1.5);
  BOOST_TEST(result.delivery_last_p99 == 0.03, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(charts_hold_every_series_and_escape_names) {
  const std::string svg =
      sim::line_chart({"Title <1>", "x", "y", false}, {{"a&b", {{0, 1}, {1, 2}}}, {"c", {{0, 3}, {1, 4}}}});
  BOOST_TEST(svg.find("Title &lt;1&gt;") != std::string::npos);
  BOOST_TEST(svg.find("a&amp;b") != std::string::npos);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1))
    ++lines;
  BOOST_TEST(lines == 2u);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  BOOST_TEST(sim::short_number(1234567) == "1.23 M");
}
