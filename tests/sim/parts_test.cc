// The pieces of the virtual world on their own.
#include <boost/test/unit_test.hpp>

#include "runtime/report/svg_chart.h"
#include "runtime/sim/cluster/curve.h"
#include "runtime/sim/cluster/fault_plan.h"
#include "runtime/sim/record/sim_result.h"
#include "runtime/sim/world/delivery.h"
#include "runtime/sim/world/event_queue.h"
#include "runtime/sim/world/fabric.h"
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

namespace {

// A fabric of fixed latency that notes what arrives, and when.
struct Wires {
  explicit Wires(std::size_t hosts)
      : fabric(options(hosts), [this](TimePoint at, sim::FabricEvent event) { queue.push(at, event); },
               [this](sim::End, bool full) { backlogs.push_back(full); }) {}

  static sim::FabricOptions options(std::size_t hosts) {
    sim::FabricOptions options = sim::fabric_of({"test", 10ms, 10ms, 0ms, 1'000'000, 2'000'000});
    options.hosts = hosts;
    options.shared_downlink = true;
    options.backlog_high = 150'000;
    options.backlog_low = 50'000;
    return options;
  }
  // A frame that takes so many bytes on the wire, from the end that dialled; its first byte is `name`.
  void send(sim::ConnectionId over, std::uint8_t name, std::size_t bytes, bool control = false) {
    fabric.send({over, 0}, Bytes(bytes - sim::framing_bytes, name), control, now);
  }
  void run_until(TimePoint end) {
    for (; !queue.empty() && queue.next() <= end;) {
      const auto [at, event] = queue.pop();
      now = at;
      if (!fabric.event(event, now)) continue;
      if (const auto arrival = fabric.take(event))
        arrived.emplace_back(arrival->frame[0], now.time_since_epoch().count());
    }
    now = end;
  }

  using Arrived = std::vector<std::pair<int, std::int64_t>>;  // name, microseconds
  sim::EventQueue<sim::FabricEvent> queue;
  TimePoint now{};
  Arrived arrived;
  std::vector<int> backlogs;
  sim::Fabric fabric;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_frame_costs_latency_and_bandwidth) {
  Wires wires(3);
  const auto from_0 = wires.fabric.open(0, 1), from_2 = wires.fabric.open(2, 1), from_1 = wires.fabric.open(1, 2);
  // 100 kB: 100 ms up, 10 ms on the way, 50 ms down. A second one waits for the first on the uplink.
  wires.send(from_0, 'a', 100'000);
  wires.send(from_0, 'b', 100'000);
  wires.send(from_1, 'd', 1000);  // another pair is not held up
  // One from elsewhere waits for the first on the downlink, control too.
  wires.run_until(TimePoint{140ms});
  wires.send(from_2, 'c', 1000);
  wires.run_until(TimePoint{230ms});
  wires.send(from_2, 'e', 1000, true);
  wires.run_until(TimePoint{1s});
  const Wires::Arrived wanted = {{'d', 11'500}, {'a', 160'000}, {'c', 160'500}, {'b', 260'000}, {'e', 260'500}};
  BOOST_TEST((wires.arrived == wanted));
}

BOOST_AUTO_TEST_CASE(control_goes_before_data_that_waits) {
  Wires wires(2);
  const auto link = wires.fabric.open(0, 1);
  for (int i = 0; i < 3; ++i) wires.send(link, 'd', 10'000);
  // Half a frame of 10 ms is still to leave, in the mean; the data that waits leaves later by what control takes.
  wires.send(link, 'c', 1000, true);
  wires.run_until(TimePoint{1s});
  const Wires::Arrived wanted = {{'c', 16'500}, {'d', 25'000}, {'d', 36'000}, {'d', 46'000}};
  BOOST_TEST((wires.arrived == wanted));
}

BOOST_AUTO_TEST_CASE(a_link_says_when_too_much_is_unsent_and_when_it_has_left) {
  Wires wires(3);
  const auto link = wires.fabric.open(0, 1), other = wires.fabric.open(0, 2);
  for (int i = 0; i < 2; ++i) wires.send(link, 'd', 75'000);
  wires.send(other, 'o', 100'000);  // each link has a backlog of its own
  BOOST_TEST(wires.backlogs == std::vector<int>{true}, boost::test_tools::per_element());
  wires.run_until(TimePoint{100ms});
  BOOST_TEST(wires.backlogs.size() == 1u);
  wires.run_until(TimePoint{160ms});
  BOOST_TEST(wires.backlogs == (std::vector<int>{true, false}), boost::test_tools::per_element());
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
