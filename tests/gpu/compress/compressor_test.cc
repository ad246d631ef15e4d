// DeviceCompressor against Compressor: after every update of a run the same entries, the same step, the same payload
// and the same residual, bit for bit.
#include "gpu/compress/compressor.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "models/optimizers/optimizer.h"
#include "tests/gpu/compress/compressor_pair.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;
using compress::CompressorOptions;

BOOST_AUTO_TEST_SUITE(gpu_compressor)

BOOST_AUTO_TEST_CASE(runs_of_updates_are_those_of_the_cpu) {
  Prng prng(21);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const std::uint32_t most = seed % 2 == 0 ? 3000 : 40000;
    const ParamLayout layout = compress::random_layout(prng, 6, most);
    const double densities[] = {1e-4, 1e-3, 0.01, 0.1, 1.0};
    CompressorOptions options{.density = densities[prng.below(5)],
                              .emit = seed % 3 == 0 ? compress::Emit::mean : compress::Emit::threshold,
                              .residual_decay = seed % 2 == 0 ? 0.5 : 0};
    CompressorPair pair(seed, layout, options);
    for (int step = 0; step < 8; ++step) {
      BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), step == 5 ? 1e-2f : 1e-4f), step % 3 == 2));
      if (step % 3 == 1) pair.check_residual();
      if (step != 3) continue;
      const double density = densities[prng.below(5)];
      pair.cpu.set_density(density);
      pair.gpu.set_density(density);
    }
    pair.check_residual();
  }
}

// Pieces of the mean's sum, several segments, tiles by the dozen.
BOOST_AUTO_TEST_CASE(a_larger_model) {
  Prng prng(22);
  const ParamLayout layout = compress::layout_of({350000, 77, 250000, 1});
  CompressorPair pair(3, layout, {.density = 0.05, .emit = compress::Emit::mean});
  for (int step = 0; step < 3; ++step) BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
  pair.check_residual();
  BOOST_TEST(pair.gpu.second_looks() < 3u);  // the first has no threshold to go by
}

BOOST_AUTO_TEST_CASE(ties_zeros_and_changes_below_the_grid) {
  Prng prng(23);
  const ParamLayout layout = compress::layout_of({20000, 300});
  CompressorPair pair(5, layout, {.density = 0.01});
  std::vector<float> equal(layout.params());
  for (float& value : equal) value = prng.chance(1, 2) ? 1e-3f : -1e-3f;
  for (int step = 0; step < 3; ++step) BOOST_TEST_REQUIRE(pair.absorb(equal));
  BOOST_TEST_REQUIRE(pair.absorb(std::vector<float>(layout.params(), 0.0f)));
  BOOST_TEST_REQUIRE(pair.absorb(std::vector<float>(layout.params(), -0.0f)));
  pair.check_residual();
  CompressorPair tiny(6, layout, {.density = 0.5});
  BOOST_TEST_REQUIRE(tiny.absorb(std::vector<float>(layout.params(), 0x1p-27f)));
  BOOST_TEST(tiny.gpu_update.count == 0u);
  std::vector<float> few(layout.params(), 0.0f);
  few[77] = 0x1p-25f;
  few[20000] = -0x1p-24f;
  few[20299] = std::numeric_limits<float>::denorm_min();
  BOOST_TEST_REQUIRE(tiny.absorb(few));
  BOOST_TEST(tiny.gpu_update.count > 0u);
  tiny.check_residual();
}

BOOST_AUTO_TEST_CASE(one_parameter) {
  const ParamLayout layout = compress::layout_of({1});
  CompressorPair pair(0, layout, {.density = 1});
  for (const float change : {0.5f, -0.25f, 0.0f, 0x1p-26f}) BOOST_TEST_REQUIRE(pair.absorb({change}));
  pair.check_residual();
}

BOOST_AUTO_TEST_CASE(what_diverged_is_refused_in_the_same_words) {
  Prng prng(24);
  const ParamLayout layout = compress::layout_of({9000, 9000});
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e10f}) {
    CompressorPair pair(1, layout, {.density = 0.01});
    for (int step = 0; step < 3; ++step) {
      std::vector<float> change = noise(prng, layout.params(), 1e-4f);
      if (step == 1) change[12345] = odd;
      if (step == 1 && odd == 1e10f) std::fill(change.begin(), change.end(), odd);
      const bool went = pair.absorb(change);
      BOOST_TEST(went == (step == 0));
    }
    pair.check_residual();
  }
}

BOOST_AUTO_TEST_CASE(an_update_is_withdrawn_and_a_residual_restored) {
  Prng prng(25);
  const ParamLayout layout = compress::layout_of({30000});
  CompressorPair pair(2, layout, {.density = 0.01});
  for (int step = 0; step < 3; ++step) BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
  pair.cpu.withdraw(pair.cpu_update);
  pair.gpu.withdraw(pair.gpu_update);
  BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
  pair.check_residual();
  const std::vector<float> state = noise(prng, layout.params(), 1e-3f);
  pair.cpu.restore_residual(state);
  pair.gpu.restore_residual(state);
  BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
  pair.check_residual();
  pair.cpu.clear_residual();
  pair.gpu.clear_residual();
  BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
  pair.check_residual();
}

// Small tensors are owed an entry now and then, large ones make several pieces and tiles; all begin unaligned.
BOOST_AUTO_TEST_CASE(a_rank_for_each_tensor) {
  Prng prng(26);
  const std::uint32_t large = on_device() ? 300'001 : 70'001;  // several blocks either way
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const ParamLayout layout =
        seed == 3 ? compress::layout_of({large, 3, 20'000}) : compress::random_layout(prng, 9, 12'000);
    const double densities[] = {1e-4, 0.003, 0.05, 1.0};
    CompressorPair pair(seed, layout,
              {.density = densities[seed],
               .emit = seed % 2 == 1 ? compress::Emit::mean : compress::Emit::threshold,
               .scope = compress::Scope::tensor});
    for (int step = 0; step < 6; ++step) {
      BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), step == 4 ? 1e-2f : 1e-4f), step % 3 == 2));
      if (step % 3 == 1) pair.check_residual();
    }
    pair.check_residual();
    BOOST_TEST(pair.gpu.threshold() == pair.cpu.stats().threshold);
  }
}

// Where all tensors have the same step the update has one, as on the CPU; where one diverged it is named.
BOOST_AUTO_TEST_CASE(equal_steps_and_what_diverged_with_a_rank_for_each_tensor) {
  const ParamLayout layout = compress::layout_of({500, 300, 9000});
  CompressorPair pair(4, layout, {.density = 0.1, .scope = compress::Scope::tensor});
  BOOST_TEST_REQUIRE(pair.absorb(std::vector<float>(layout.params(), 0.25f)));
  BOOST_TEST(pair.gpu_update.step == 1 << 22);
  BOOST_TEST(pair.gpu_update.tensor_step.empty());
  std::vector<float> odd(layout.params(), 1e-3f);
  odd[8000] = std::numeric_limits<float>::quiet_NaN();
  odd[600] = std::numeric_limits<float>::infinity();
  BOOST_TEST(!pair.absorb(odd));
  pair.check_residual();
}

// The step inside the pass, of every optimizer, with a rank over all and one a tensor: updates and moments.
BOOST_AUTO_TEST_CASE(steps_of_optimizers_are_those_of_the_cpu) {
  Prng prng(28);
  for (const char* kind : {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw", "adaptive_revision"}) {
    const compress::Scope scope = prng.chance(1, 2) ? compress::Scope::global : compress::Scope::tensor;
    const ParamLayout layout = compress::layout_of({8'200, 5, 9'003});
    CompressorPair pair(prng.below(9), layout, {.density = 0.02, .scope = scope, .residual_decay = 0.9});
    const std::unique_ptr<models::Optimizer> optimizer =
        models::make_optimizer({.kind = kind}, layout.params()).value();
    const std::vector<float> weights = noise(prng, layout.params(), 1e-2f);
    const Guarded<float> first(pair.target, layout.params()), second(pair.target, layout.params()),
        last(pair.target, layout.params()), on_weights(pair.target, weights);
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> gradient = noise(prng, layout.params(), 1e-3f);
      const StepRule rule = optimizer->begin_step(0.01, weights);
      StepRule on_device = rule;
      const auto moment = [&](const Guarded<float>& to, float*& from) {
        if (from == nullptr) return;
        if (step == 0) to.write(std::vector<float>(from, from + layout.params()));
        from = to.data();
      };
      moment(first, on_device.first);
      moment(second, on_device.second);
      moment(last, on_device.last);
      if (rule.weights != nullptr) on_device.weights = on_weights.data();
      pair.delta.write(gradient.data(), gradient.size());
      BOOST_TEST_REQUIRE(pair.cpu.absorb_step(rule, gradient, pair.cpu_update).ok());
      BOOST_TEST_REQUIRE(pair.gpu.absorb_step(on_device, pair.delta, pair.gpu_update).ok());
      pair.check_payload();
      const auto same = [&](const Guarded<float>& got, const float* expected) {
        return expected == nullptr || std::memcmp(got.read().data(), expected, got.size() * sizeof(float)) == 0;
      };
      BOOST_TEST(same(first, rule.first));
      BOOST_TEST(same(second, rule.second));
      BOOST_TEST(same(last, rule.last));
    }
    pair.check_residual();
  }
}

BOOST_AUTO_TEST_CASE(an_update_is_shrunk_and_changes_are_added_between_updates) {
  Prng prng(27);
  for (const compress::Scope scope : {compress::Scope::global, compress::Scope::tensor}) {
    const ParamLayout layout = compress::layout_of({21'000, 40, 3'000});
    CompressorPair pair(7, layout, {.density = 0.02, .emit = compress::Emit::mean, .scope = scope});
    for (int step = 0; step < 5; ++step) {
      BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-4f)));
      for (const std::uint32_t fewer : {pair.gpu_update.count / 2, 1u + step}) {
        pair.cpu.shrink(fewer, pair.cpu_update);
        BOOST_TEST_REQUIRE(pair.gpu.shrink(fewer, pair.gpu_update).ok());
        pair.check_payload();
        if (pair.gpu_update.count == 0) break;
      }
      if (step % 2 == 0) continue;
      const std::vector<std::uint32_t> index{0, 77, 20'999, 21'000, 24'039};
      const std::vector<float> change{0.5f, -0.25f, 1e-5f, -3.0f, 1e-3f};
      auto on_index = DeviceArray<std::uint32_t>::create(*pair.target.gpu, index.size(), "a test").value();
      auto on_change = DeviceArray<float>::create(*pair.target.gpu, change.size(), "a test").value();
      on_index.write(index.data(), index.size());
      on_change.write(change.data(), change.size());
      pair.cpu.add(index, change);
      pair.gpu.add(on_index, on_change, 5);
      pair.check_residual();
    }
  }
}

// The mean of the largest is beyond the grid where that of all was not: nothing is sent, nothing leaves the residual.
BOOST_AUTO_TEST_CASE(an_update_that_shrinks_beyond_the_grid_is_empty) {
  const ParamLayout layout = compress::layout_of({4});
  CompressorPair pair(8, layout, {.density = 1, .emit = compress::Emit::mean});
  BOOST_TEST_REQUIRE(pair.absorb({200.0f, 50.0f, -50.0f, 0.5f}));
  BOOST_TEST(pair.gpu_update.count == 4u);
  pair.cpu.shrink(1, pair.cpu_update);
  BOOST_TEST_REQUIRE(pair.gpu.shrink(1, pair.gpu_update).ok());
  BOOST_TEST(pair.gpu_update.count == 0u);
  pair.check_payload();
  pair.check_residual();
  BOOST_TEST(pair.cpu.residual()[0] == 200.0f);
}

BOOST_AUTO_TEST_SUITE_END()
