// The frontier: which settings are run, which of them no other beats, and what the page says of them.
#include "runtime/sim/experiments/frontier.h"

#include <cmath>
#include <regex>

#include "runtime/base/text.h"
#include "tests/sim/support.h"

using namespace rumor;

namespace {

std::vector<std::string> labels(const sim::FrontierPlan& plan) {
  std::vector<std::string> all;
  for (const sim::Method& run : plan.runs()) all.push_back(run.label);
  return all;
}

sim::FrontierPlan planned(const std::vector<std::string>& texts, const std::vector<double>& factors,
                          const RunConfig& base = test::small_run()) {
  return sim::plan_frontier(texts, base, 4, factors).value();
}

std::string refused_frontier(const std::vector<std::string>& texts) {
  const auto plan = sim::plan_frontier(texts, test::small_run(), 4, {1});
  return plan ? "" : plan.error().text;
}

// A run of 100 mini-batches of 16 samples a peer and 1,000 parameters: 100,000 bytes are one for each of both.
sim::Trial ended(double rate, double loss, double bytes, double seconds) {
  sim::Trial t;
  t.rate = rate;
  t.samples = 6400;
  t.params = 1000;
  t.loss = loss;
  t.accuracy = 1 - loss;
  t.sent_bytes = bytes;
  t.virtual_seconds = seconds;
  t.identical = true;
  sim::CurvePoint start, end;
  start.loss = 2.3;
  start.accuracy = 0.1;
  end.loss = loss;
  end.accuracy = t.accuracy;
  end.virtual_seconds = seconds;
  end.sent_bytes_per_node = bytes;
  t.curve = {start, end};
  return t;
}

sim::Trial diverged(double rate) {
  sim::Trial t;
  t.rate = rate;
  t.loss = std::nan("");
  return t;
}

sim::Frontier frontier(const sim::FrontierPlan& plan, const std::vector<sim::Trial>& ends) {
  std::size_t next = 0;
  auto compared = sim::compare(plan.runs(), {1}, 1, 1, [&](const sim::Method&, double, std::uint64_t) {
    return Result<sim::Trial>(ends.at(next++));
  });
  return sim::frontier_of(plan, std::move(compared).value());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Labels = std::vector<std::string>;
const auto each = boost::test_tools::per_element();

}  // namespace

BOOST_AUTO_TEST_CASE(a_point_is_undominated_when_no_other_is_as_good_and_better) {
  const double nothing = std::nan("");
  const std::vector<std::pair<std::pair<double, double>, bool>> points = {{{0.3, 10}, true},  // the best loss
                                                                          {{0.4, 5}, true},
                                                                          {{0.4, 6}, false},  // dearer for the same
                                                                          {{0.5, 5}, false},  // worse for the same
                                                                          {{0.6, 1}, true},   // the cheapest
                                                                          {{0.6, 1}, true},   // and its equal
                                                                          {{0.7, 20}, false},
                                                                          {{nothing, 0.1}, false},  // diverged
                                                                          {{0.1, nothing}, false}};
  std::vector<std::pair<double, double>> costs;
  for (const auto& [cost, best] : points) costs.push_back(cost);
  const std::vector<bool> got = sim::undominated(costs);
  for (std::size_t i = 0; i < points.size(); ++i) BOOST_TEST(got[i] == points[i].second, i);
  BOOST_TEST(sim::undominated({{1, 1}})[0]);
  BOOST_TEST(sim::undominated({}).empty());
}

BOOST_AUTO_TEST_CASE(each_method_is_turned_along_its_own_axis) {
  const std::vector<double> factors = {3, 1, 0.1};  // in any order
  BOOST_TEST(labels(planned({"broadcast"}, factors)) ==
                 (Labels{"broadcast:compress.density=0.002", "broadcast", "broadcast:compress.density=0.06"}), each);
  BOOST_TEST(labels(planned({"average:compress.density=0.03:optimizer.rate=0.1"}, factors)) ==
                 (Labels{"average:optimizer.rate=0.1:compress.density=0.003",
                         "average:compress.density=0.03:optimizer.rate=0.1",
                         "average:optimizer.rate=0.1:compress.density=0.09"}), each);
  BOOST_TEST(labels(planned({"sync:exchange.outer=sparse"}, {2})) ==
                 (Labels{"sync:exchange.outer=sparse:compress.density=0.04"}), each);
  BOOST_TEST(labels(planned({"sync:exchange.local_steps=10"}, factors)) ==
                 (Labels{"sync:exchange.local_steps=100", "sync:exchange.local_steps=10",
                         "sync:exchange.local_steps=3"}), each);
  BOOST_TEST(labels(planned({"downpour:exchange.servers=4"}, factors)) ==
                 (Labels{"downpour:exchange.servers=4:exchange.fetch_every=10:exchange.push_every=10",
                         "downpour:exchange.servers=4"}), each);  // three times each step's bytes is no more
  BOOST_TEST(labels(planned({"sync", "broadcast"}, {1})) == (Labels{"sync", "broadcast"}), each);
  BOOST_TEST(labels(planned({"sync", "alone", "broadcast"}, factors)).size() == 5u);  // two have nothing to turn
  RunConfig budget = test::small_run();
  BOOST_REQUIRE(override_run_config(budget, "compress.bytes_per_update=500"));
  BOOST_TEST(labels(planned({"broadcast"}, {0.1, 2}, budget)) ==
                 (Labels{"broadcast:compress.bytes_per_update=64", "broadcast:compress.bytes_per_update=1000"}), each);
}

BOOST_AUTO_TEST_CASE(settings_stay_within_their_bounds_and_equal_ones_are_one) {
  const auto plan = planned({"broadcast"}, {1, 100, 1000});
  BOOST_TEST(labels(plan) == (Labels{"broadcast", "broadcast:compress.density=0.2"}), each);
  BOOST_TEST(plan.settings[0].text == "density 2 %");
  BOOST_TEST(plan.settings[1].brief == "20 %");
  RunConfig automatic = test::small_run();
  automatic.density = 0;  // "auto": 25 / (4 peers * 125 steps), and no more than 0.01
  BOOST_TEST(labels(planned({"broadcast"}, {0.1}, automatic)) == (Labels{"broadcast:compress.density=0.001"}), each);
}

BOOST_AUTO_TEST_CASE(methods_have_the_names_of_their_papers) {
  const auto plan = planned({"sync:exchange.local_steps=10", "sync:exchange.local_steps=10:exchange.outer=nesterov",
                             "sync:exchange.participation=0.5", "sync", "sync:optimizer.kind=adam", "alone"}, {1});
  const char* const names[] = {"local SGD", "DiLoCo", "FedAvg", "sync", "sync:optimizer.kind=adam", "alone"};
  for (std::size_t i = 0; i < std::size(names); ++i) BOOST_TEST(plan.methods[i].name == names[i]);
  const auto all = planned(sim::frontier_methods(), {0.1, 0.3, 1, 3});
  BOOST_TEST(all.settings.size() == 18u);  // as the help says
  BOOST_TEST(all.methods[2].name == "SparseLoCo");
  BOOST_TEST(all.methods[4].name == "dense averaging");
}

BOOST_AUTO_TEST_CASE(a_frontier_refuses_what_it_cannot_draw) {
  BOOST_TEST(has(refused_frontier({"broadcast", "sync", "broadcast"}), "broadcast is named twice"));
  BOOST_TEST(has(refused_frontier({"alone"}), "one peer alone sends none"));
  BOOST_TEST(has(refused_frontier({"magic"}), "there is no method 'magic'"));
  BOOST_TEST(has(refused_frontier({"broadcast:compress.densty=1"}), "did you mean compress.density"));
}

BOOST_AUTO_TEST_CASE(what_no_other_setting_beats_is_on_the_frontier) {
  const auto plan = planned({"broadcast", "sync", "alone"}, {1, 2});
  const auto f = frontier(plan, {ended(0.3, 0.4, 1000, 50), ended(0.3, 0.3, 2000, 60), ended(0.3, 0.35, 600'000, 900),
                                 ended(0.3, 0.2, 0, 400)});
  const auto near = boost::test_tools::tolerance(1e-9);
  BOOST_REQUIRE(f.points.size() == 4u);
  BOOST_TEST(f.points[0].bytes == 0.01, near);
  BOOST_TEST(f.points[2].bytes == 6, near);
  BOOST_TEST(f.points[3].bytes == 0);
  const bool cheapest[] = {true, true, false, false}, quickest[] = {true, true, false, true};
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(f.points[i].cheapest == cheapest[i]);
    BOOST_TEST(f.points[i].quickest == quickest[i]);
  }
  const std::string json = sim::to_json(f);
  for (const char* part :
       {"\"command\": \"compare\"", "\"ring_ratio\"", "\"frontier\": {", "\"name\": \"dense averaging\"",
        "\"setting\": \"density 4 %\"", "\"run\": \"broadcast:compress.density=0.04\"",
        "\"bytes_per_parameter\": 6.0", "\"on_time_frontier\": true"})
    BOOST_TEST(has(json, part), part);
  BOOST_TEST(has(sim::to_table(f), "bytes, time"));
}

BOOST_AUTO_TEST_CASE(the_page_shows_every_setting_and_says_how_to_read_it) {
  const auto plan = planned({"broadcast", "sync:optimizer.kind=adam", "alone", "average"}, {1, 2});
  const auto f = frontier(plan, {ended(0.3, 0.4, 1000, 50), ended(0.3, 0.3, 2000, 60), ended(0.3, 0.35, 600'000, 900),
                                 ended(0.3, 0.2, 0, 400), diverged(0.3), ended(0.3, 0.5, 5000, 70)});
  const std::string page = sim::to_html(f);
  for (const char* part :
       {"Frontier of synthetic", "Loss against bytes", "Loss against virtual time", "sent by a peer: bytes / para",
        "Filled marks on the dashed line", "averaging with neighbours", "density 4 %", "alone: sends nothing",
        "diverged", "<code>sync:optimizer.kind=adam</code>", "accuracy 70.00 %, 0.02 bytes", "bytes, time",
        ">0.01<", ">100<"})
    BOOST_TEST(has(page, part), part);
  BOOST_TEST(!std::regex_search(page, std::regex("\\b(nan|inf)\\b")));
  BOOST_TEST(!has(page, "<script"));
  BOOST_TEST(!has(page, "http"));
}

BOOST_AUTO_TEST_CASE(a_frontier_of_one_point_is_a_page_too) {
  const std::string page = sim::to_html(frontier(planned({"broadcast"}, {1}), {ended(0.3, 0.4, 1000, 50)}));
  BOOST_TEST(has(page, "density 2 %"));
  BOOST_TEST(!std::regex_search(page, std::regex("\\b(nan|inf)\\b")));
}

BOOST_AUTO_TEST_CASE(a_best_rate_at_the_edge_of_those_tried_is_said) {
  const auto plan = planned({"broadcast", "sync"}, {1});
  const auto with_best_factor = [&](double best) {
    auto compared = sim::compare(plan.runs(), {0.5, 1, 2}, 1, 1, [&](const sim::Method& m, double rate, std::uint64_t) {
      return Result<sim::Trial>(ended(rate, 0.3 + std::abs(rate / m.config.rate - best), 1000, 50));
    });
    return sim::frontier_of(plan, std::move(compared).value());
  };
  const char* const doubt = "2 of 2 settings did best at the lowest or the highest rate tried";
  for (const double edge : {0.5, 2.0})
    for (const std::string& text : {sim::to_table(with_best_factor(edge)), sim::to_html(with_best_factor(edge))})
      BOOST_TEST(has(text, doubt));
  BOOST_TEST(!has(sim::to_table(with_best_factor(1)), "--rates"));
}

BOOST_AUTO_TEST_CASE(a_small_frontier_for_real) {
  const RunConfig base = test::small_run(4000);
  const auto plan = planned({"broadcast", "sync:exchange.local_steps=4", "sync"}, {0.25, 1}, base);
  auto compared = sim::compare(plan.runs(), {1}, 1, 1, [&](const sim::Method& method, double rate, std::uint64_t seed) {
    RunConfig config = method.config;
    config.rate = rate;
    auto result = sim::simulate(config, test::small_data(), test::lan(method.nodes, seed), nullptr);
    return result ? Result<sim::Trial>(sim::trial_of(*result, rate)) : result.error();
  });
  const auto f = sim::frontier_of(plan, std::move(compared).value());
  BOOST_REQUIRE(f.points.size() == 5u);
  const auto near = boost::test_tools::tolerance(0.05);
  BOOST_TEST(f.points[4].bytes == 6, near);        // a ring: 2 * 3 / 4 models of 4 bytes a parameter
  BOOST_TEST(f.points[3].bytes == 1.5, near);      // every fourth step
  BOOST_TEST(f.points[2].bytes == 6.0 / 16, near);
  BOOST_TEST(f.points[0].bytes < f.points[1].bytes);
  std::size_t best = 0, cheapest = 0;
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    if (f.compared.methods[i].loss < f.compared.methods[best].loss) best = i;
    if (f.points[i].bytes < f.points[cheapest].bytes) cheapest = i;
  }
  BOOST_TEST((f.points[best].cheapest && f.points[best].bytes > f.points[cheapest].bytes));
  BOOST_TEST(f.points[cheapest].cheapest);
}
