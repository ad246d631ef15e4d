// Training under drawn faults: what strikes, that it strikes the same way twice, and that all is well
// afterwards.
#include "runtime/sim/storm/training_storm.h"

#include "tests/shortened.h"
#include "tests/sim/support.h"

using namespace rumor;

namespace {

sim::TrainingStormResult storm(const sim::StormRequest& request, std::size_t nodes,
                               const RunConfig& config = test::small_run(12'000)) {
  sim::ClusterOptions options = test::lan(nodes, request.seed);
  options.curve_points = 2;
  auto all = sim::run_training_storm(config, test::small_data(), options, request, "rumor sim synthetic", nullptr);
  BOOST_REQUIRE_MESSAGE(all.ok(), (all.ok() ? "" : all.error().text));
  return std::move(all).value();
}

std::string text(const std::optional<sim::Violation>& violation) {
  return violation ? violation->invariant + " " + violation->text : "";
}

sim::StormRequest seeded(std::uint64_t seed) {
  sim::StormRequest request;
  request.seed = seed;
  return request;
}

sim::StormRequest only(std::initializer_list<sim::FaultKind> kinds) {
  sim::StormRequest request;
  request.allowed = 0;
  for (const sim::FaultKind kind : kinds) request.forced |= sim::fault_bit(kind);
  return request;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training_storm)

BOOST_AUTO_TEST_CASE(whatever_strikes_all_are_trained_and_equal_in_the_end) {
  std::uint64_t strikes = 0, restarts = 0, partitions = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const sim::TrainingStormResult all = storm(seeded(seed), 3 + seed % 4);
    BOOST_TEST_CONTEXT(all.report.replay << ": " << text(all.report.violation)) {
      BOOST_TEST(!all.report.violation.has_value());
      BOOST_TEST(all.result.samples >= 12'000u);
      BOOST_TEST(all.result.identical);
      BOOST_TEST(all.result.doubled == 0u);
      BOOST_TEST(all.report.trace != 0u);
    }
    strikes += all.result.strikes;
    restarts += all.result.restarts;
    partitions += all.result.partitions;
  }
  BOOST_TEST(strikes > 60u);
  BOOST_TEST(restarts > 10u);
  BOOST_TEST(partitions > 4u);
}

BOOST_AUTO_TEST_CASE(peers_that_train_in_turn_bear_it_too) {
  RunConfig config = test::small_run(12'000);
  config.turns = {.trainers = 2, .turn_updates = 8};
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const sim::TrainingStormResult all = storm(seeded(seed), 6, config);
    BOOST_TEST_CONTEXT(all.report.replay << ": " << text(all.report.violation)) {
      BOOST_TEST(!all.report.violation.has_value());
      BOOST_TEST(all.result.samples >= 12'000u);
      BOOST_TEST(all.result.identical);
      BOOST_TEST(all.result.strikes > 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_seed_one_trace_and_its_line_repeats_it) {
  const sim::TrainingStormResult one = storm(seeded(7), 4), two = storm(seeded(7), 4),
                                 other = storm(seeded(8), 4);
  BOOST_TEST(one.report.trace == two.report.trace);
  BOOST_TEST(one.result.digest == two.result.digest);
  BOOST_TEST(one.result.loss == two.result.loss);
  BOOST_TEST(one.report.trace != other.report.trace);
  BOOST_TEST(one.report.replay == "rumor sim synthetic --faults storm --sim-seed 7 --nodes 4");
}

// The constant is the trace of one build: all must give it. It changes with the protocol, the recipe and the
// faults.
BOOST_AUTO_TEST_CASE(the_trace_is_the_same_in_every_build) {
  const sim::TrainingStormResult all = storm(seeded(11), 5, test::small_run(6'000));
  BOOST_TEST_MESSAGE("trace " << std::hex << all.report.trace);
  BOOST_TEST(all.report.trace == 0x5ba59822abe8fc80u);
}

// A second process with the same key ends, or is killed with its disk: updates that it gave to nobody go with it, but
// no other update is lost.
BOOST_AUTO_TEST_CASE(a_clone_takes_only_its_own_undelivered_updates_along) {
  sim::StormRequest request = only({sim::FaultKind::clone});
  std::uint64_t strikes = 0, undelivered = 0;
  for (request.seed = 1; request.seed <= test::shortened(12); ++request.seed) {
    const sim::TrainingStormResult all = storm(request, 4, test::small_run(6'000));
    BOOST_TEST_CONTEXT("seed " << request.seed << ": " << text(all.report.violation)) {
      BOOST_TEST(!all.report.violation.has_value());
      BOOST_TEST(all.result.lost == all.report.lost);
    }
    strikes += all.result.strikes;
    undelivered += all.result.undelivered;
  }
  BOOST_TEST(strikes > 0u);
  if (test::shortened(12) == 12) BOOST_TEST(undelivered > 0u);
}

BOOST_AUTO_TEST_CASE(each_of_the_faults_of_disks_clocks_and_processors_alone) {
  using K = sim::FaultKind;
  const std::pair<const char*, sim::StormRequest> cases[] = {
      {"a full disk, and a restart from it", only({K::disk_full, K::crash})},
      {"nothing left after a crash", only({K::power_off, K::disk_lost})},
      {"torn writes", only({K::power_off, K::crash_in_effects, K::disk_torn})},
      {"flipped bits on disk", only({K::crash, K::disk_flipped})},
      {"an old checkpoint, or another's", only({K::crash, K::disk_stale, K::disk_foreign})},
      {"a clock that jumps", only({K::clock_jump})},
      {"a clock that runs fast or slow", only({K::clock_drift})},
      {"a clock that stands still", only({K::clock_stop})},
      {"a process that stands still", only({K::pause})},
      {"a slow processor", only({K::slow_processor})},
      {"links that stall or swallow", only({K::stall, K::half_open})}};
  for (auto [name, request] : cases) {
    constexpr std::uint64_t seeds = 6;
    std::uint64_t strikes = 0;
    for (request.seed = 1; request.seed <= seeds; ++request.seed) {
      // The first seeds of some kinds strike nobody.
      if (request.seed > test::shortened(seeds) && strikes >= test::shortened(3)) break;
      const sim::TrainingStormResult all = storm(request, 4, test::small_run(6'000));
      BOOST_TEST_CONTEXT(name << ", seed " << request.seed << ": " << text(all.report.violation)) {
        BOOST_TEST(!all.report.violation.has_value());
        BOOST_TEST(all.result.samples >= 6'000u);
      }
      strikes += all.result.strikes;
    }
    BOOST_TEST(strikes >= test::shortened(3), name << " struck " << strikes << " times");
  }
}

BOOST_AUTO_TEST_CASE(actions_can_be_left_out_one_by_one) {
  const sim::TrainingStormResult all = storm(seeded(3), 4);
  sim::StormRequest none = seeded(3), some = seeded(3);
  none.no_actions = true;
  some.chaos = 300ms;
  BOOST_TEST(storm(none, 4).result.strikes == 0u);
  const std::uint64_t few = storm(some, 4).result.strikes;
  BOOST_TEST(few < all.result.strikes);
}

BOOST_AUTO_TEST_SUITE_END()
