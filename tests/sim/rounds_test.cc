// Ways in lock-step (runtime/sim/methods): averaging of models with an outer step, and consensus ADMM. Their formulas
// by hand, and what they do on a small model with stragglers and absences.
#include <cmath>

#include "runtime/sim/methods/absences.h"
#include "runtime/sim/methods/consensus.h"
#include "runtime/sim/methods/outer_step.h"
#include "tests/sim/support.h"

using namespace rumor;
using test::run;
using sim::ConsensusPeer;
using sim::OuterStep;

namespace {

constexpr float nothing = 0;
const auto near = boost::test_tools::tolerance(1e-6f);

RunConfig with(std::vector<std::string> settings, std::uint64_t samples = 8000) {
  RunConfig config = test::small_run(samples);
  for (const std::string& setting : settings) BOOST_REQUIRE(override_run_config(config, setting).ok());
  return config;
}

std::string refusal(const RunConfig& config) {
  const auto result = sim::simulate(config, test::small_data(), test::lan(4), nullptr);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST((result.error().code == Errc::usage));
  return result.error().text;
}

// The second peer of four is away for four seconds from the first second on, and so are two others later.
sim::ClusterOptions with_absences() {
  sim::ClusterOptions options = test::lan(4);
  options.planned_faults = {{.at = 1s, .lasts = 4s, .nodes = {1}},
                            {.at = 2010ms, .lasts = 500ms, .every = 3s, .nodes = {0, 2}}};
  return options;
}

const std::vector<std::vector<std::string>> ways = {
    {"exchange.mode=sync", "exchange.local_steps=8"},
    {"exchange.mode=sync", "exchange.local_steps=8", "exchange.outer=nesterov", "optimizer.rate=0.1"},
    {"exchange.mode=sync", "exchange.local_steps=8", "exchange.outer=sparse", "compress.density=0.05"},
    {"exchange.mode=sync", "exchange.local_steps=8", "exchange.participation=0.5", "data.skew=3"},
    {"exchange.mode=admm", "exchange.local_steps=8", "exchange.penalty=0.1"},
};

}  // namespace

// Peer 1 is away from 10 s to 12 s, from 20 s to 22 s, and so on.
BOOST_AUTO_TEST_CASE(an_absence_is_seen_between_two_times) {
  sim::ClusterOptions options = test::lan(4);
  options.planned_faults = {{.at = 10s, .lasts = 2s, .every = 10s, .nodes = {1}}};
  const auto absences = sim::Absences::create(options, "sync").value();
  const auto away = [&](std::size_t i, Duration begin, Duration end) {
    return absences.away_between(i, TimePoint{begin}, TimePoint{end});
  };
  BOOST_TEST(!away(1, 0s, 10s));
  BOOST_TEST(away(1, 0s, 10001ms));
  BOOST_TEST(away(1, 11s, 11500ms));
  BOOST_TEST(!away(1, 12s, 20s));
  BOOST_TEST(away(1, 12s, 21s));
  BOOST_TEST(away(1, 31999ms, 33s));
  BOOST_TEST(!away(0, 0s, 100s));
}

// From (4, 4) one peer goes to (2, 4), one to (0, 8). It holds three times as many rows.
BOOST_AUTO_TEST_CASE(a_plain_outer_step_is_the_mean_of_models_by_rows_held) {
  const std::vector<std::uint32_t> rows = {1, 3};
  const std::vector<float> shares = sim::shares_of(rows);
  BOOST_TEST(shares == (std::vector<float>{0.25f, 0.75f}), boost::test_tools::per_element());
  OuterStep outer(sim::OuterRule{}, 2, 2);
  std::vector<float> model = {4, 4};
  outer.add(0, shares[0], model, std::vector<float>{2, 4});
  outer.add(1, shares[1], model, std::vector<float>{0, 8});
  outer.step(model);
  BOOST_TEST(model == (std::vector<float>{0.5f, 7}), boost::test_tools::per_element());
}

// Outer gradients 1 and 2; momentum 0.5, rate 0.1: m = 1, w = -0.1 (1 + 0.5); m = 2.5, w -= 0.1 (2 + 1.25).
BOOST_AUTO_TEST_CASE(nesterov_steps_as_by_hand) {
  OuterStep outer({.rate = 0.1f, .momentum = 0.5f}, 1, 1);
  std::vector<float> w = {0};
  outer.add(0, 1, w, std::vector<float>{-1});
  outer.step(w);
  BOOST_TEST(w[0] == -0.15f, near);
  outer.add(0, 1, w, std::vector<float>{w[0] - 2});
  outer.step(w);
  BOOST_TEST(w[0] == -0.475f, near);
}

// k = 1. Changes (4, -3): 4 is sent, -3 stays; then (1, -1): e = (1, 0.95 * -3 - 1 = -3.85), which is sent.
BOOST_AUTO_TEST_CASE(sparse_sends_the_largest_and_keeps_a_decaying_rest) {
  OuterStep outer({.entries = 1}, 2, 2);
  const std::vector<float> zero = {0, 0};
  std::vector<float> w = zero;
  outer.add(0, 0.5f, zero, std::vector<float>{-4, 3});
  outer.step(w);
  BOOST_TEST(w[0] == -2.0f, near);
  BOOST_TEST(w[1] == nothing);
  outer.add(0, 0.5f, zero, std::vector<float>{-1, 1});
  outer.step(w);
  BOOST_TEST(w[0] == -2.0f, near);
  BOOST_TEST(w[1] == 1.925f, near);
  outer.forget(0);  // e is (1, 0) no more
  outer.add(0, 0.5f, zero, std::vector<float>{0, 0.5f});
  outer.step(w);
  BOOST_TEST(w[0] == -2.0f, near);
  BOOST_TEST(w[1] == 2.175f, near);
  // 1,000 parameters: a position takes 10 bits, a value 32.
  BOOST_TEST(sim::outer_message_bytes({.entries = 100}, 1000) == 525);
  BOOST_TEST(sim::outer_message_bytes({}, 1000) == 4000);
}

// f_i(x) = (x - a_i)^2 / 2 with a = 0 and 4, rho = 1. A gradient step of 1 / 2 is exact: x = (a + z - u) / 2.
BOOST_AUTO_TEST_CASE(admm_goes_to_the_mean_as_by_hand) {
  const float a[] = {0, 4};
  std::vector<ConsensusPeer> peers(2, {{0}, {0}});
  std::vector<float> z = {0};
  const float want_x[3][2] = {{0, 2}, {1, 2}, {1.5f, 2}}, want_u[3][2] = {{-1, 1}, {-1.5f, 1.5f}, {-1.75f, 1.75f}};
  const float want_z[3] = {1, 1.5f, 1.75f};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2; ++i) {
      std::vector<float> gradient = {peers[i].x[0] - a[i]};
      sim::add_pull(1, peers[i], z, gradient);
      peers[i].x[0] -= 0.5f * gradient[0];
    }
    z = {0};
    for (const ConsensusPeer& peer : peers) sim::add_to_consensus(0.5f, peer, z);
    for (ConsensusPeer& peer : peers) sim::update_dual(peer, z);
    BOOST_TEST(z[0] == want_z[round]);
    for (int i = 0; i < 2; ++i) {
      BOOST_TEST(peers[i].x[0] == want_x[round][i]);
      BOOST_TEST(peers[i].u[0] == want_u[round][i]);
    }
  }
}

// A run on another network reuses the earlier training, with the same results as training again.
BOOST_AUTO_TEST_CASE(what_is_learned_need_not_be_learned_again_elsewhere) {
  sim::ClusterOptions here = test::lan(4), there = here;
  there.network.latency_min = there.network.latency_max = 80ms;
  there.network.up_bytes_per_second = 100'000;
  there.step_factors = {1, 3};
  const auto bits = [](const sim::CurvePoint& p) {
    return std::tuple(p.samples, p.virtual_seconds, p.loss, p.accuracy, p.sent_bytes_per_node);
  };
  for (const auto& way : ways) {
    const RunConfig config = with(way);
    const sim::SimResult first = run(config, here), whole = run(config, there);
    there.learned = std::make_shared<const std::vector<sim::CurvePoint>>(first.curve);
    const sim::SimResult known = run(config, there);
    BOOST_TEST(whole.virtual_seconds > first.virtual_seconds * 2);
    BOOST_TEST(known.virtual_seconds == whole.virtual_seconds);
    BOOST_TEST(known.sent_bytes_per_node == whole.sent_bytes_per_node);
    BOOST_TEST(known.idle_fraction == whole.idle_fraction);
    BOOST_TEST(known.loss == whole.loss);
    BOOST_REQUIRE(known.curve.size() == whole.curve.size());
    for (std::size_t p = 0; p < known.curve.size(); ++p) BOOST_TEST((bits(known.curve[p]) == bits(whole.curve[p])));
    BOOST_TEST(known.trace_hash != whole.trace_hash);  // its weights have not moved
    there.learned = nullptr;
  }
  // With other steps there are other points; where somebody goes away, what is learned is another thing.
  here.learned = std::make_shared<const std::vector<sim::CurvePoint>>(run(with(ways[0]), here).curve);
  const auto other = sim::simulate(with(ways[0], 9000), test::small_data(), here, nullptr);
  BOOST_REQUIRE(!other.ok());
  BOOST_TEST(other.error().text.find("of another run") != std::string::npos);
  sim::ClusterOptions shaken = with_absences();
  const sim::SimResult without = run(with(ways[0]), shaken);
  shaken.learned = here.learned;
  BOOST_TEST(run(with(ways[0]), shaken).trace_hash == without.trace_hash);
}

BOOST_AUTO_TEST_CASE(every_way_learns_and_two_runs_are_equal) {
  for (const auto& settings : ways) {
    BOOST_TEST_CONTEXT(settings.back()) {
      const sim::SimResult one = run(with(settings), test::lan(4));
      BOOST_TEST(one.loss < 0.8 * one.curve.front().loss);
      BOOST_TEST(one.samples == 8000u);  // the last round is cut
      BOOST_TEST(sim::to_json(run(with(settings), test::lan(4))) == sim::to_json(one));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_way_goes_on_without_those_who_are_away) {
  std::vector<std::vector<std::string>> all = ways;
  all.push_back({"exchange.mode=sync"});
  for (const auto& settings : all) {
    BOOST_TEST_CONTEXT(settings.back()) {
      const sim::SimResult whole = run(with(settings, 32'000), test::lan(4));
      const sim::SimResult holed = run(with(settings, 32'000), with_absences());
      BOOST_TEST(holed.samples >= 32'000u);
      BOOST_TEST(holed.loss < 0.8 * holed.curve.front().loss);
      BOOST_TEST(holed.virtual_seconds > whole.virtual_seconds);
      BOOST_TEST(holed.trace_hash != whole.trace_hash);
    }
  }
}

// Nobody stays for the forty seconds of a round.
BOOST_AUTO_TEST_CASE(a_run_in_which_no_round_is_ever_finished_is_refused) {
  sim::ClusterOptions options = test::lan(2);
  options.planned_faults = {{.at = 1s, .lasts = 1s, .every = 10s, .nodes = {0}},
                            {.at = 6s, .lasts = 1s, .every = 10s, .nodes = {1}}};
  const RunConfig config = with({"exchange.mode=sync", "exchange.local_steps=2000"}, 1'000'000);
  const auto result = sim::simulate(config, test::small_data(), options, nullptr);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().text.find("lower exchange.local_steps") != std::string::npos);
}

// With plain SGD one local step of each, averaged, is the averaging of gradients, but for rounding.
BOOST_AUTO_TEST_CASE(one_local_step_is_a_step_on_the_mean_gradient) {
  const sim::SimResult gradients = run(with({"exchange.mode=sync"}, 1600), test::lan(4));
  const std::vector<std::string> keys = {"exchange.mode=sync", "exchange.outer=nesterov", "exchange.outer_rate=1",
                                         "exchange.outer_momentum=0"};
  const sim::SimResult models = run(with(keys, 1600), test::lan(4));
  BOOST_TEST(models.loss == gradients.loss, boost::test_tools::tolerance(1e-4));
  BOOST_TEST(models.virtual_seconds == gradients.virtual_seconds);
  BOOST_TEST(models.sent_bytes_per_node == gradients.sent_bytes_per_node);
}

// 125 steps in 16 rounds. 5 % of P entries of 32 + log P bits, to three others.
BOOST_AUTO_TEST_CASE(what_is_sent_is_what_a_round_takes) {
  const double every = run(with({"exchange.mode=sync"}), test::lan(4)).sent_bytes_per_node;
  for (const std::size_t w : {0u, 1u, 4u})
    BOOST_TEST(run(with(ways[w]), test::lan(4)).sent_bytes_per_node == every * 16 / 125,
               boost::test_tools::tolerance(1e-9));
  const sim::SimResult sparse = run(with(ways[2]), test::lan(4));
  const double entries = std::floor(0.05 * static_cast<double>(sparse.params) + 0.5);
  const double bits = 32 + std::ceil(std::log2(static_cast<double>(sparse.params)));
  BOOST_TEST(sparse.update_bytes_mean == std::ceil(entries * bits / 8));
  BOOST_TEST(sparse.sent_bytes_per_node == 16 * 3 * sparse.update_bytes_mean);
}

// Two of four in a round: they average between themselves, and who sat out downloads the model from one who did not.
BOOST_AUTO_TEST_CASE(who_sat_out_fetches_the_model) {
  const sim::SimResult half = run(with(ways[3]), test::lan(4));
  const double dense = half.dense_update_bytes, rounds = static_cast<double>(half.updates) / 2;
  BOOST_TEST(rounds == 32);  // 31 of 256 samples, and a last one of two steps
  double sent = 0, received = 0;
  for (const sim::NodeTraffic& t : half.traffic) {
    sent += static_cast<double>(t.sent_bytes);
    received += static_cast<double>(t.received_bytes);
  }
  BOOST_TEST(sent == received);
  const double fetched = sent / dense - 2 * rounds;  // models; a ring of two sends one each
  BOOST_TEST(fetched > 0.5 * rounds);                // in the mean one of the two that are drawn sat out before
  BOOST_TEST(fetched < 1.5 * rounds);
}

// A round lasts as long as the slowest peer's, and all wait for it.
BOOST_AUTO_TEST_CASE(a_round_waits_for_the_straggler) {
  for (const std::size_t w : {0u, 4u}) {
    sim::ClusterOptions options = test::lan(4);
    const double equal = run(with(ways[w]), options).virtual_seconds;
    options.step_factors = {1, 1, 1, 10};
    BOOST_TEST(run(with(ways[w]), options).virtual_seconds > 9 * equal);
  }
}

BOOST_AUTO_TEST_CASE(keys_that_mean_nothing_together_are_refused) {
  const auto says = [](std::vector<std::string> settings, const std::string& part) {
    settings.push_back("exchange.mode=sync");
    const std::string text = refusal(with(settings));
    BOOST_TEST(text.find(part) != std::string::npos, text);
  };
  says({"exchange.outer_rate=0.5"}, "set exchange.outer");
  says({"exchange.outer=sparse", "exchange.outer_momentum=0.9"}, "leave exchange.outer_momentum out");
  says({"exchange.outer=sparse", "compress.bytes_per_update=1000"}, "set compress.density");
  RunConfig config = test::small_run();
  for (const char* wrong : {"exchange.local_steps=0", "exchange.participation=1.5", "exchange.outer=heavy",
                            "exchange.outer_momentum=1", "exchange.penalty=-1", "exchange.servers=0"})
    BOOST_TEST(!override_run_config(config, wrong).ok(), wrong);
}
