// Runs whose pictures grow (data.resolution): replicas are equal through all phases, and joiners need nothing special.
#include "runtime/training/model_trainer.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(resolution)

namespace {

std::uint64_t samples_of(const sim::Cluster& cluster, std::size_t node) {
  return cluster.node(node)->status(cluster.now()).samples;
}

void run_to(sim::Cluster& cluster, std::uint64_t samples) {
  for (int turns = 0; samples_of(cluster, 0) < samples; ++turns) {
    BOOST_REQUIRE(turns < 100'000);
    cluster.run_until(cluster.now() + 10ms);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(everyone_ends_with_the_same_bits_and_one_seed_has_one_trace) {
  for (const std::size_t nodes : {std::size_t{1}, std::size_t{2}, std::size_t{6}}) {
    const RunConfig config = test::in_sizes(test::small_run(6000));
    const sim::SimResult r = test::run(config, test::lan(nodes)), again = test::run(config, test::lan(nodes));
    BOOST_TEST(r.identical);
    BOOST_TEST(r.lost == 0u);
    BOOST_TEST(r.samples >= 6000u);
    BOOST_TEST(r.trace_hash == again.trace_hash);
    BOOST_TEST(r.digest == again.digest);
  }
}

// The network's weights are those of the run without phases, and the beginning differs.
BOOST_AUTO_TEST_CASE(one_phase_of_whole_pictures_learns_what_no_phase_does) {
  RunConfig none = test::in_sizes(test::small_run(3000)), whole = none;
  none.resolution = {};
  whole.resolution = {{{0, 8}}};
  const sim::SimResult a = test::run(none, test::lan(1)), b = test::run(whole, test::lan(1));
  const sim::SimResult c = test::run(test::in_sizes(none), test::lan(1));
  BOOST_TEST(a.loss == b.loss);
  BOOST_TEST(a.loss != c.loss);
}

BOOST_AUTO_TEST_CASE(small_pictures_take_less_virtual_time) {
  RunConfig config = test::in_sizes(test::small_run(6000));
  const double phases = test::run(config, test::lan(2)).virtual_seconds;
  config.resolution = {};
  const double whole = test::run(config, test::lan(2)).virtual_seconds;
  const auto trainer = ModelTrainer::create(test::in_sizes(config), test::small_data(), {0, 1}, 1).value();
  const double share = 0.3 * trainer->share_of_work(2) + 0.3 * trainer->share_of_work(4) + 0.4;
  BOOST_TEST(phases < whole * (share + 0.05));
  BOOST_TEST(phases > whole * (share - 0.05));
}

// In the middle phase one peer dies and comes back empty, in the last phase another.
BOOST_AUTO_TEST_CASE(joiners_in_any_phase_catch_up_and_agree) {
  const RunConfig config = test::in_sizes(test::small_run(12'000));
  const auto cluster = test::make_cluster(config, test::lan(4));
  run_to(*cluster, 2000);
  cluster->kill(2);
  run_to(*cluster, 5000);
  cluster->restart(2);
  run_to(*cluster, 6000);
  cluster->kill(3);
  run_to(*cluster, 9000);
  cluster->restart(3);
  test::finish(*cluster);
  test::require_all_equal(*cluster, 4);
  for (const std::size_t back : {2u, 3u}) BOOST_TEST(cluster->node(back)->figures().own_updates() > 0u);
}

BOOST_AUTO_TEST_CASE(peers_with_models_of_their_own_grow_their_pictures_too) {
  for (const char* mode : {"average", "codistill"}) {
    RunConfig config = test::in_sizes(test::small_run(6000));
    config.mode = mode;
    config.rate = 0.02;
    const sim::SimResult phases = test::run(config, test::lan(4));
    config.resolution = {};
    const sim::SimResult whole = test::run(config, test::lan(4));
    BOOST_TEST(phases.samples >= 6000u, mode);
    BOOST_TEST(phases.loss != whole.loss, mode);
    BOOST_TEST(phases.virtual_seconds < 0.9 * whole.virtual_seconds,
               mode << ": " << phases.virtual_seconds << " of " << whole.virtual_seconds << " s");
  }
}

BOOST_AUTO_TEST_SUITE_END()
