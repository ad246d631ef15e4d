// The progress that a run reports, and how methods without equal replicas describe the replicas at its end.
#include "runtime/sim/methods/method_record.h"
#include "tests/sim/support.h"

using namespace rumor;

// The curve has two points; a stop between them still takes effect.
BOOST_AUTO_TEST_CASE(a_run_can_be_stopped_between_two_points_of_its_curve) {
  for (const char* mode : {"broadcast", "sync", "codistill", "average"}) {
    RunConfig config = test::small_run(16'000);
    config.mode = mode;
    sim::ClusterOptions options = test::lan(4);
    options.curve_points = 2;
    std::size_t told = 0;
    const auto result =
        sim::simulate(config, test::small_data(), options, [&](const sim::CurvePoint& point, double fraction) {
          ++told;
          BOOST_TEST(static_cast<double>(point.samples) == fraction * 16'000, boost::test_tools::tolerance(1e-9));
          return fraction < 0.25;
        });
    BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
    BOOST_TEST(result->stopped_early);
    BOOST_TEST(result->samples < 6'000u);
    BOOST_TEST((told > 4 && told < 300), told);
    BOOST_TEST(result->curve.size() == 2u);  // its beginning and its end
  }
}

// Peers that have gone apart by as much in opposite directions have a mean that has not moved; they are not equal.
BOOST_AUTO_TEST_CASE(replicas_are_equal_when_their_bits_are) {
  const RunConfig config = test::small_run();
  const sim::ClusterOptions options = test::lan(2);
  sim::Learners learners = sim::Learners::create(config, test::small_data(), options).value();
  const sim::Absences absences = sim::Absences::create(options, config.mode).value();
  const sim::Progress silent;
  const auto of = [&](std::span<const std::span<const float>> replicas) {
    sim::MethodRecord record{sim::MethodSetting{config, options, learners, absences, silent}};
    return record.conclude(0, TimePoint{1s}, {1.0, {}}, replicas).value();
  };
  std::vector<float> up = learners.start(), down = up, far = up;
  up[0] += 0.25f;
  down[0] -= 0.25f;
  far[0] += 1;
  const std::span<const float> apart[] = {up, down}, same[] = {up, up}, unlike[] = {up, far};
  BOOST_TEST(!of(apart).identical);
  BOOST_TEST(of(same).identical);
  BOOST_TEST(of(same).disagreement == 0);
  BOOST_TEST(!of(unlike).identical);
  // 0.25 and 1 have come 0.625 in the mean and are 0.375 from it.
  BOOST_TEST(of(unlike).disagreement == 0.6, boost::test_tools::tolerance(1e-3));
}
