// DeviceTrainer near the end of the grid: it leaves out what ModelTrainer leaves out, and its weights stay before the
// mark.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "compress/select/range_guard.h"
#include "runtime/base/grid_range.h"
#include "tests/gpu/models/learner.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_range_end)

namespace {

constexpr int fine_grid = 30;  // ends at 2; the mark is at 1.5
constexpr float grid_unit = 1.0f / (1 << fine_grid);

RunConfig on_a_fine_grid() {
  RunConfig config = small_run("sgd");
  config.grid_bits = fine_grid;
  return config;
}

// Takes every third weight near the mark, some of them beyond it, by an update as of another peer.
StepResult push(const ParamLayout& layout) {
  StepResult pushed;
  pushed.update.step = static_cast<std::int32_t>(std::ldexp(1.4, fine_grid));
  for (std::uint32_t i = 0; i < layout.params(); i += 3) {
    pushed.update.index.push_back(i);
    pushed.update.negative.push_back(i % 2);
  }
  pushed.payload = compress::encode(layout, pushed.update);
  return pushed;
}

// Changes that wait: larger where weights are near the mark, in both directions.
std::vector<float> waiting(std::uint32_t params) {
  Prng prng(81);
  std::vector<float> residual(params);
  for (std::uint32_t i = 0; i < params; ++i) {
    const float magnitude = static_cast<float>(1 + prng.below(1000)) * (i % 3 == 0 ? 2e-4f : 1e-4f);
    residual[i] = prng.chance(1, 3) ? -magnitude : magnitude;
  }
  return residual;
}

double largest_of(const Replica& replica) {
  std::int64_t largest = 0;
  for (const std::int32_t weight : replica.weights()) largest = std::max(largest, std::abs(std::int64_t{weight}));
  return static_cast<double>(largest);
}

}  // namespace

// With a rate of zero a step is what waits, and both must make the same of it.
BOOST_AUTO_TEST_CASE(entries_wait_that_wait_on_the_cpu) {
  if (!has_products(Target())) return;
  std::size_t run = 0;
  for (const compress::Emit emit : {compress::Emit::threshold, compress::Emit::mean})
    for (const compress::Scope scope : {compress::Scope::global, compress::Scope::tensor}) {
      const std::size_t gpus = 1 + run++ % 3;
      if (gpus > 1 && !target_group(gpus)) continue;
      RunConfig config = on_a_fine_grid();
      config.emit = emit;
      config.scope = scope;
      Learner gpu(make_device_trainer(config, run, gpus).value()), cpu(make_model_trainer(config));
      const ParamLayout& layout = gpu.trainer->layout();
      const std::vector<float> residual = waiting(layout.params());
      for (Learner* one : {&gpu, &cpu}) {
        BOOST_TEST_REQUIRE(one->trainer->restore(residual, one->trainer->optimizer_state()).ok());
        one->take(push(layout), 1);
      }
      const double pushed = largest_of(gpu.replica);
      std::size_t left_out = 0;
      for (std::uint64_t step = 2; step < 8; ++step) {
        const StepPlan plan{.rate = 0, .density = 0.05, .hold = step == 4};
        const StepResult there = gpu.step(plan), here = cpu.step(plan);
        BOOST_TEST_REQUIRE(there.failure == "");
        BOOST_TEST((there.payload == here.payload));
        BOOST_TEST((there.update == here.update));
        BOOST_TEST(there.at_range_end == here.at_range_end, boost::test_tools::per_element());
        BOOST_TEST(there.at_range_end.empty() == plan.hold);
        left_out += there.at_range_end.size();
        const std::span<const float> waits = gpu.trainer->residual(), waits_here = cpu.trainer->residual();
        BOOST_TEST(std::equal(waits.begin(), waits.end(), waits_here.begin(), waits_here.end()));
        if (plan.hold) continue;
        BOOST_TEST(!there.update.index.empty());
        for (Learner* one : {&gpu, &cpu}) one->take(here, step);
      }
      BOOST_TEST(left_out > 50u);
      BOOST_TEST(largest_of(gpu.replica) <= std::max<double>(range_guarded, pushed));
    }
}

// Without the guard this run goes beyond the mark, and then around.
BOOST_AUTO_TEST_CASE(weights_stay_before_the_mark) {
  if (!has_products(Target())) return;
  for (const std::size_t gpus : {1u, 2u}) {
    if (gpus > 1 && !target_group(gpus)) continue;
    Learner one(make_device_trainer(on_a_fine_grid(), 3, gpus).value());
    const ParamLayout& layout = one.trainer->layout();
    const float unit = grid_unit;
    std::size_t left_out = 0, after = 0;
    std::uint64_t step = 0;
    for (; step < 400 && after < 30; after += left_out > 0) {
      std::vector<float> before(layout.params());
      for (std::size_t i = 0; i < before.size(); ++i)
        before[i] = static_cast<float>(one.replica.weights()[i]) * unit;
      const StepResult made = one.step(StepPlan{.rate = 2, .density = 0.05});
      BOOST_TEST_REQUIRE(made.failure == "");
      BOOST_TEST((compress::encode(layout, made.update) == made.payload));
      BOOST_TEST(compress::RangeGuard({before, unit}).beyond(layout, made.update).empty());
      for (const std::uint32_t position : made.at_range_end)
        BOOST_TEST(!std::binary_search(made.update.index.begin(), made.update.index.end(), position));
      left_out += made.at_range_end.size();
      one.take(made, ++step);
    }
    BOOST_TEST(left_out > 0u);
    BOOST_TEST(largest_of(one.replica) <= range_guarded);
    BOOST_TEST(largest_of(one.replica) > range_guarded / 2);
    BOOST_TEST(one.trainer->step({.rate = 0, .density = 0.05, .period = step + 2, .survey = true}).failure == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
