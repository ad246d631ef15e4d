// Downpour SGD (runtime/sim/methods/downpour.cc): a shard by hand, and the servers on a small model.
#include "runtime/sim/methods/server_shard.h"
#include "tests/sim/support.h"

using namespace rumor;
using test::run;

namespace {

RunConfig downpour_run(std::vector<std::string> settings, std::uint64_t samples = 8000) {
  RunConfig config = test::small_run(samples);
  settings.insert(settings.begin(), "exchange.mode=downpour");
  for (const std::string& setting : settings) BOOST_REQUIRE(override_run_config(config, setting).ok());
  return config;
}

}  // namespace

// w = (1, 2), rate 0.5. Two workers fetch, both push, the first fetches and pushes again.
BOOST_AUTO_TEST_CASE(a_shard_applies_pushes_as_they_come) {
  std::vector<float> w = {1, 2};
  sim::ServerShard shard(w, models::make_optimizer({}, 2).value());
  BOOST_TEST(shard.push(std::vector<float>{1, 0}, 0, 0.5) == 0u);
  BOOST_TEST(w == (std::vector<float>{0.5f, 2}), boost::test_tools::per_element());
  BOOST_TEST(shard.push(std::vector<float>{1, 2}, 0, 0.5) == 1u);  // computed at (1, 2)
  BOOST_TEST(w == (std::vector<float>{0, 1}), boost::test_tools::per_element());
  const std::uint64_t fetched = shard.version();
  BOOST_TEST(fetched == 2u);
  BOOST_TEST(shard.push(std::vector<float>{0, 4}, fetched, 0.25) == 0u);
  BOOST_TEST(w == (std::vector<float>{0, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(downpour_learns_and_two_runs_are_equal) {
  for (const char* keys : {"exchange.servers=1", "exchange.servers=3", "exchange.push_every=4"}) {
    const RunConfig config = downpour_run({keys, "exchange.fetch_every=2"});
    const sim::SimResult one = run(config, test::lan(4));
    BOOST_TEST(one.loss < 0.8 * one.curve.front().loss);
    BOOST_TEST(one.samples >= 8000u);
    BOOST_TEST(one.samples < 8000u + 4 * 4 * 16);  // what the others still had under way
    BOOST_TEST(sim::to_json(run(config, test::lan(4))) == sim::to_json(one));
  }
}

// One worker alone, its own server: the same bits as plain steps.
BOOST_AUTO_TEST_CASE(one_worker_is_plain_training) {
  RunConfig plain = downpour_run({});
  plain.mode = "sync";
  const sim::SimResult downpour = run(downpour_run({}), test::lan(1));
  BOOST_TEST(downpour.trace_hash != 0u);
  BOOST_TEST(downpour.loss == run(plain, test::lan(1)).loss);
  BOOST_TEST(downpour.sent_bytes_per_node == 0);
}

// Each step of a worker that is no server: one model up, one down, and a request. The server sends what they get.
BOOST_AUTO_TEST_CASE(servers_pay_for_what_workers_fetch) {
  const sim::SimResult one = run(downpour_run({}), test::lan(4));
  const double dense = one.dense_update_bytes;
  double workers = 0;
  for (std::size_t i = 1; i < 4; ++i) workers += static_cast<double>(one.traffic[i].received_bytes);
  BOOST_TEST(static_cast<double>(one.traffic[0].sent_bytes) == workers);
  BOOST_TEST(workers == 375 * dense, boost::test_tools::tolerance(0.02));  // 500 steps, three in four by others
  const sim::SimResult four = run(downpour_run({"exchange.servers=4"}), test::lan(4));
  const double least = static_cast<double>(four.traffic[0].sent_bytes);
  BOOST_TEST(static_cast<double>(four.traffic[3].sent_bytes) == least, boost::test_tools::tolerance(0.1));
  const sim::SimResult rare = run(downpour_run({"exchange.push_every=5", "exchange.fetch_every=5"}), test::lan(4));
  BOOST_TEST(rare.sent_bytes_per_node == one.sent_bytes_per_node / 5, boost::test_tools::tolerance(0.05));
}

// On slow uplinks sixteen fetch from one server: its uplink is the clock of the run, until there are more servers.
BOOST_AUTO_TEST_CASE(one_server_is_a_hot_spot) {
  sim::ClusterOptions options = test::lan(16);
  options.network.up_bytes_per_second = 100'000;
  const sim::SimResult one = run(downpour_run({}, 16'000), options);
  const double uplink = static_cast<double>(one.traffic[0].sent_bytes) / 100'000;
  BOOST_TEST(one.virtual_seconds > uplink);
  BOOST_TEST(one.virtual_seconds < 1.1 * uplink);
  BOOST_TEST(run(downpour_run({"exchange.servers=16"}, 16'000), options).virtual_seconds < one.virtual_seconds / 2);
}

BOOST_AUTO_TEST_CASE(nobody_waits_for_a_straggler) {
  const auto seconds = [](double factor) {
    sim::ClusterOptions options = test::lan(16);
    options.step = 200ms;
    options.step_factors.assign(16, 1);
    options.step_factors.back() = factor;
    return run(downpour_run({}, 32'000), options).virtual_seconds;
  };
  BOOST_TEST(seconds(10) < 1.2 * seconds(1));
}

// A worker is away for a while, then the server: everybody waits for it, and it goes on with the model it had.
BOOST_AUTO_TEST_CASE(workers_go_on_without_each_other_and_wait_for_the_server) {
  const double whole = run(downpour_run({}), test::lan(4)).virtual_seconds;
  const auto away = [&](std::size_t node) {
    sim::ClusterOptions options = test::lan(4);
    options.planned_faults = {{.at = 500ms, .lasts = 1s, .nodes = {node}}};
    const sim::SimResult result = run(downpour_run({}), options);
    BOOST_TEST(result.samples >= 8000u);
    BOOST_TEST(result.loss < 0.8 * result.curve.front().loss);
    return result.virtual_seconds - whole;
  };
  BOOST_TEST(away(3) > 0.2);
  BOOST_TEST(away(3) < 0.35);  // a second's work of one of four
  BOOST_TEST(away(0) > 0.95);
  BOOST_TEST(away(0) < 1.1);
}

BOOST_AUTO_TEST_CASE(more_servers_than_peers_are_refused) {
  const auto result = sim::simulate(downpour_run({"exchange.servers=5"}), test::small_data(), test::lan(4), nullptr);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().text.find("set it to 4 or fewer") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_optimizer_of_whole_matrices_is_refused) {
  const RunConfig config = downpour_run({"optimizer.kind=muon", "model.hidden=[8, 8]"});
  const auto result = sim::simulate(config, test::small_data(), test::lan(4), nullptr);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().text.find("optimizer.kind") != std::string::npos);
}
