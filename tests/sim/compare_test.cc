// Comparing ways to train: the figures by hand from invented trials, and all three ways for real on a small model.
#include "runtime/sim/experiments/compare.h"

#include <cmath>

#include "runtime/base/text.h"
#include "tests/sim/support.h"

using namespace rumor;

namespace {

sim::CurvePoint point(double seconds, double bytes, double loss, double accuracy) {
  sim::CurvePoint p;
  p.virtual_seconds = seconds;
  p.sent_bytes_per_node = bytes;
  p.loss = loss;
  p.accuracy = accuracy;
  return p;
}

// Ends with `loss`, after three points: at its start, in the middle, at the end.
sim::Trial invented(double rate, std::uint64_t seed, double loss, double seconds, double bytes) {
  sim::Trial t;
  t.rate = rate;
  t.seed = seed;
  t.samples = 1600;
  t.params = 1000;
  t.loss = loss;
  t.accuracy = 1 - loss;
  t.virtual_seconds = seconds;
  t.sent_bytes = bytes;
  t.identical = true;
  t.curve = {point(0, 0, 0.9, 0.1), point(seconds / 2, bytes / 2, 0.5, 0.5), point(seconds, bytes, loss, 1 - loss)};
  return t;
}

std::vector<sim::Method> methods(const RunConfig& base, const std::vector<std::string>& texts, std::size_t nodes = 4) {
  std::vector<sim::Method> all;
  for (const std::string& text : texts) all.push_back(sim::parse_method(text, base, nodes).value());
  return all;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_method_is_a_kind_and_keys_of_the_run_file) {
  const RunConfig base = test::small_run();
  const auto sync = sim::parse_method("sync:optimizer.kind=adam:optimizer.rate=0.002", base, 8).value();
  BOOST_TEST(sync.config.mode == "sync");
  BOOST_TEST(sync.config.optimizer.kind == "adam");
  BOOST_TEST(sync.config.rate == 0.002);
  BOOST_TEST(sync.nodes == 8u);
  BOOST_TEST(sim::parse_method("alone", base, 8).value().nodes == 1u);
  BOOST_TEST(says(sim::parse_method("magic", base, 8).error().text, "choose broadcast, sync, "));
  BOOST_TEST(says(sim::parse_method("sync:optimizer.rat=1", base, 8).error().text, "did you mean optimizer.rate"));
  BOOST_TEST(sim::parse_method("sync:run.samples=5000", base, 8).value().config.samples == 5000u);
  BOOST_TEST(says(sim::parse_method("sync:data.seed=5", base, 8).error().text, "all methods see the same data"));
}

BOOST_AUTO_TEST_CASE(equal_effort_finds_each_methods_rate_and_curves_meet_at_equal_bytes_and_time) {
  RunConfig base = test::small_run();
  base.rate = 1;
  base.batch = 16;
  std::vector<std::string> tried;
  const auto run = [&](const sim::Method& method, double rate, std::uint64_t seed) -> Result<sim::Trial> {
    tried.push_back(str(method.label, " ", fixed(rate, 1), " ", seed));
    const double from_best = std::abs(rate - (method.label == "sync" ? 2 : 1));
    if (method.label == "sync") return invented(rate, seed, 0.2 + from_best / 10, 100, 200'000);
    if (method.label == "alone") return invented(rate, seed, rate > 1 ? std::nan("") : 0.4 + from_best / 10, 400, 0);
    return invented(rate, seed, 0.3 + from_best / 10 + 0.02 * static_cast<double>(seed - 1), 50, 20'000);
  };
  const auto all = sim::compare(methods(base, {"broadcast", "sync", "alone"}), {0.5, 1, 2}, 1, 2, run).value();
  const std::vector<std::string> want = {"broadcast 0.5 1", "broadcast 1.0 1", "broadcast 2.0 1", "broadcast 1.0 2",
                                         "sync 0.5 1",      "sync 1.0 1",      "sync 2.0 1",      "sync 2.0 2",
                                         "alone 0.5 1",     "alone 1.0 1",     "alone 2.0 1",     "alone 1.0 2"};
  BOOST_TEST(tried == want, boost::test_tools::per_element());
  const auto near = boost::test_tools::tolerance(1e-9);
  const auto &broadcast = all.methods[0], &sync = all.methods[1], &alone = all.methods[2];
  BOOST_TEST(broadcast.loss == 0.31, near);
  BOOST_TEST(broadcast.loss_spread == 0.02, near);
  BOOST_TEST(sync.loss == 0.2, near);
  BOOST_TEST(all.equal_bytes == 20'000);
  BOOST_TEST(all.equal_seconds == 50);
  BOOST_TEST(all.common_loss == 0.4, near);
  BOOST_TEST(*broadcast.loss_at_bytes == 0.31, near);
  BOOST_TEST(*sync.loss_at_bytes == 0.9 - 0.4 / 5, near);  // 20,000 of the 100,000 to its middle
  BOOST_TEST(!alone.loss_at_bytes.has_value());
  BOOST_TEST(*sync.loss_at_time == 0.5, near);
  BOOST_TEST(*alone.loss_at_time == 0.9 - 0.4 / 4, near);
  BOOST_TEST(*alone.seconds_to_common_loss == 400, near);
  BOOST_TEST(*sync.seconds_to_common_loss == 50 + 50.0 / 3, near);
  // 25 steps of 4 peers with 16 samples each, each 2 * 3 / 4 * 4 bytes * 1000.
  BOOST_TEST(sync.ring_ratio == 25 * 6000.0 / 200'000, near);
  BOOST_TEST(alone.ring_ratio == 0);

  const std::vector<std::string> reading = all.reading();
  BOOST_REQUIRE(reading.size() == 4u);
  BOOST_TEST(says(reading[0], "Fastest: broadcast"));
  BOOST_TEST(reading[1] ==
             "As good, sooner: broadcast is at 60.00 % after 38.2 s, alone ends there after 400 s (10.5 times).");
  BOOST_TEST(says(reading[2], "Most accurate: sync, loss 0.2000, accuracy 80.00 %, before broadcast, alone"));
  BOOST_TEST(says(reading[3], "broadcast, 69.00 % after 50.0 s"));
  for (const std::string& text : {sim::to_table(all), sim::to_html(all), sim::to_json(all)})
    for (const char* label : {"broadcast", "sync", "alone"}) BOOST_TEST(says(text, label));
}

// Broadcast sees twice the samples; between 25 and 50 s its accuracy goes from 0.5 to 0.9 on one seed and to 0.77 on
// the other, in the mean to 0.83. So it is at sync's last 0.7 after 40 s, and never at the 0.875 of one peer alone.
BOOST_AUTO_TEST_CASE(where_the_fastest_is_before_others_end_there) {
  const auto run = [&](const sim::Method& method, double rate, std::uint64_t seed) -> Result<sim::Trial> {
    if (method.label == "sync") return invented(rate, seed, 0.3, 5000, 200'000);
    if (method.label == "alone") return invented(rate, seed, seed == 1 ? 0.2 : 0.05, 400, 0);
    sim::Trial trial = invented(rate, seed, seed == 1 ? 0.1 : 0.5 - 0.2 * 4 / 3, 50, 20'000);
    trial.samples = 3200;
    return trial;
  };
  const auto all = sim::compare(methods(test::small_run(), {"broadcast:run.samples=3200", "sync", "alone"}), {1}, 1, 2,
                                run).value();
  const auto &broadcast = all.methods[0], &sync = all.methods[1], &alone = all.methods[2];
  const auto near = boost::test_tools::tolerance(1e-9);
  BOOST_TEST(*sim::seconds_to_the_end_of(sync, broadcast) == 40, near);
  BOOST_TEST(!sim::seconds_to_the_end_of(alone, broadcast));
  BOOST_TEST(*sim::seconds_to_the_end_of(broadcast, broadcast) == 50, near);
  BOOST_TEST(says(all.reading()[1], "As good, sooner: broadcast:run.samples=3200 is at 70.00 % after 40.0 s, sync ends "
                                    "there after 5000 s (125.0 times)."));
  BOOST_TEST(says(sim::to_table(all), "1600 to 3200 samples each way"));
}

// The results of the other methods are still reported; seeds after the first would be wasted on the one that diverges.
BOOST_AUTO_TEST_CASE(a_method_that_diverges_at_every_rate_is_left_out_of_the_comparison) {
  std::size_t of_sync = 0;
  const auto run = [&](const sim::Method& method, double rate, std::uint64_t seed) -> Result<sim::Trial> {
    if (method.label != "sync") return invented(rate, seed, 0.3, 50, 20'000);
    ++of_sync;
    sim::Trial diverged;
    diverged.rate = rate;
    diverged.seed = seed;
    diverged.loss = std::nan("");
    return diverged;
  };
  const auto both = sim::compare(methods(test::small_run(), {"sync", "broadcast"}), {1, 2}, 1, 3, run).value();
  BOOST_TEST(of_sync == 2u);
  BOOST_TEST(both.methods[0].diverged());
  BOOST_TEST(!both.methods[1].diverged());
  BOOST_TEST(both.samples == 1600u);
  BOOST_TEST(both.equal_seconds == 50);
  BOOST_TEST(both.equal_bytes == 20'000);
  BOOST_TEST(both.common_loss == 0.3, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(both.reading().empty());  // of one there is no first
  BOOST_TEST(says(sim::to_table(both), "diverged"));
  BOOST_TEST(says(sim::to_html(both), "diverged"));
  BOOST_TEST(says(sim::to_json(both), "\"loss\": null"));

  const auto none = sim::compare(methods(test::small_run(), {"sync"}), {1, 2}, 1, 1, run);
  BOOST_REQUIRE(!none.ok());
  BOOST_TEST(says(none.error().text, "every method diverges"));
}

BOOST_AUTO_TEST_CASE(a_trial_comes_back_from_its_file) {
  sim::Trial t = invented(0.25, 7, 0.125, 12.5, 4096);
  t.idle = 0.75;
  t.curve[1].accuracy.reset();
  const auto back = sim::trial_from_json(sim::to_json(t)).value();
  BOOST_TEST(sim::to_json(back) == sim::to_json(t));
  t.loss = std::nan("");
  BOOST_TEST(std::isnan(sim::trial_from_json(sim::to_json(t)).value().loss));
  const std::string text = sim::to_json(t);
  for (std::size_t cut = 0; cut < text.size() - 2; ++cut)
    BOOST_TEST_REQUIRE(!sim::trial_from_json(text.substr(0, cut)));
  BOOST_TEST(!sim::trial_from_json("[1, 2]"));
}

BOOST_AUTO_TEST_CASE(three_ways_for_real) {
  RunConfig base = test::small_run(8000);
  const auto run = [&](const sim::Method& method, double rate, std::uint64_t seed) -> Result<sim::Trial> {
    RunConfig config = method.config;
    config.rate = rate;
    auto result = sim::simulate(config, test::small_data(), test::lan(method.nodes, seed), nullptr);
    if (!result) return result.error();
    return sim::trial_of(*result, rate);
  };
  const auto all = sim::compare(methods(base, {"broadcast", "sync", "alone"}), {1}, 1, 1, run).value();
  const auto &broadcast = all.methods[0], &sync = all.methods[1], &alone = all.methods[2];
  for (const sim::MethodFigures& m : all.methods) {
    BOOST_TEST(m.identical);
    BOOST_TEST(m.loss < m.runs[0].curve.front().loss);
    BOOST_TEST(m.runs[0].samples >= 8000u);
    BOOST_TEST(m.runs[0].curve.back().loss == m.loss);
    BOOST_TEST(m.runs[0].curve.back().virtual_seconds == m.virtual_seconds);
    BOOST_TEST(m.seconds_to_common_loss.has_value());  // the worst of them reaches it at its end
  }
  BOOST_TEST(sync.ring_ratio == 1, boost::test_tools::tolerance(0.01));
  BOOST_TEST(broadcast.ring_ratio > 2);
  BOOST_TEST(alone.sent_bytes == 0);
  BOOST_TEST(alone.virtual_seconds > 3 * broadcast.virtual_seconds);
  for (const sim::MethodFigures* m : {&broadcast, &sync}) BOOST_TEST((m->idle > 0 && m->idle < 0.5), m->idle);
}
