// The end of the grid on a GPU: DeviceRangeGuard finds what RangeGuard finds, and DeviceCompressor leaves it out as
// Compressor does, bit for bit.
#include "gpu/compress/range_guard.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "compress/select/budget.h"
#include "tests/gpu/compress/compressor_pair.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_range_guard)

namespace {

constexpr float limit = 96;  // three quarters of 128, where a grid of 24 bits ends

// One weight in `rare` is within five of the limit, on either side and of either sign; the others are small.
std::vector<float> weights_near_the_end(Prng& prng, std::size_t size, std::uint64_t rare) {
  std::vector<float> weights = noise(prng, size, 0.1f);
  for (float& weight : weights)
    if (prng.chance(1, rare))
      weight = (limit - 5 + static_cast<float>(prng.below(1001)) * 0.01f) * (prng.chance(1, 2) ? 1.0f : -1.0f);
  return weights;
}

// Both compressors with the same weights, and a guard for each.
struct GuardedPair : CompressorPair {
  GuardedPair(std::uint64_t order, const ParamLayout& the_layout, const compress::CompressorOptions& options,
              std::vector<float> the_weights)
      : CompressorPair(order, the_layout, options),
        weights(std::move(the_weights)),
        view(DeviceArray<float>::create(*target.gpu, weights.size(), "a test").value()),
        guard(*target.gpu, layout, options.grid_bits) {
    view.write(weights.data(), weights.size());
  }
  compress::RangeGuard guard_here() { return compress::RangeGuard({weights, std::ldexp(1.0f, -24)}); }

  void keep_in_range_there(std::vector<std::uint32_t>& left_out) {
    while (true) {
      const auto beyond = guard.beyond(view, gpu_update);
      BOOST_TEST_REQUIRE(beyond.ok());
      if (beyond->empty()) return;
      left_out.insert(left_out.end(), beyond->begin(), beyond->end());
      BOOST_TEST_REQUIRE(gpu.leave_out(*beyond, gpu_update).ok());
    }
  }
  // After absorb(), and a cut to half of the entries where asked. Returns the number left out.
  std::size_t keep_in_range(bool cut) {
    std::vector<std::uint32_t> there;
    compress::CompressorEntries here(cpu, layout, cpu_update, {}, {.guard = guard_here()});
    keep_in_range_there(there);
    check_payload();
    if (cut && cpu_update.index.size() > 1) {
      const auto half = static_cast<std::uint32_t>(cpu_update.index.size() / 2);
      BOOST_TEST_REQUIRE(here.shrink(half).ok());
      BOOST_TEST_REQUIRE(gpu.shrink(half, gpu_update).ok());
      keep_in_range_there(there);
      check_payload();
    }
    BOOST_TEST(there == here.left_out(), boost::test_tools::per_element());
    BOOST_TEST(guard_here().beyond(layout, cpu_update).empty());
    return there.size();
  }

  std::vector<float> weights;
  DeviceArray<float> view;
  DeviceRangeGuard guard;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_guard_finds_what_that_of_the_cpu_finds) {
  Prng prng(91);
  const ParamLayout layout = compress::layout_of({9'000, 300, 12'000});
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    GuardedPair pair(seed, layout, {}, weights_near_the_end(prng, layout.params(), seed % 3 == 0 ? 1'000'000 : 9));
    const std::int32_t step = 1 << prng.below(31);  // up to 64: some lead beyond from anywhere
    const auto entries = 1 + static_cast<std::uint32_t>(prng.below(9000));
    auto update = compress::random_update(prng, layout.params(), entries, step);
    pair.gpu_update.clear();
    if (seed % 4 == 1) {
      update.step = 0;
      update.tensor_step = {step, 3, step / 2 + 1};
      compress::normalize_steps(update);
    }
    BOOST_TEST_REQUIRE(pair.gpu_update.write_entries(*pair.target.gpu, update).ok());
    pair.gpu_update.step = update.step;
    pair.gpu_update.tensor_step = update.tensor_step;
    BOOST_TEST((pair.gpu_update.read().value() == update));
    const auto found = pair.guard.beyond(pair.view, pair.gpu_update).value();
    BOOST_TEST(found == pair.guard_here().beyond(layout, update), boost::test_tools::per_element());
  }
}

// A mark that a weight has reached exactly, and a step that the float of the weight does not show.
BOOST_AUTO_TEST_CASE(the_mark_itself) {
  const ParamLayout layout = compress::layout_of({6});
  GuardedPair pair(1, layout, {}, {limit, -limit, limit - 1, 1 - limit, std::nextafter(limit, 0.0f), 0});
  for (const std::int32_t step : {30, 1 << 24, (1 << 24) + 1, 0x6000'0000, 0x6000'0001, 0x7fff'ffff}) {
    const compress::SparseUpdate update{step, {0, 1, 2, 3, 4, 5}, {0, 1, 0, 1, 0, 0}, {}};
    BOOST_TEST_REQUIRE(pair.gpu_update.write_entries(*pair.target.gpu, update).ok());
    pair.gpu_update.step = step;
    const auto found = pair.guard.beyond(pair.view, pair.gpu_update).value();
    BOOST_TEST(found == pair.guard_here().beyond(layout, update), boost::test_tools::per_element());
    BOOST_TEST(found.size() >= 2u);
  }
}

// In the emulation it is known what crosses the bus.
BOOST_AUTO_TEST_CASE(weights_far_from_the_end_stay_on_the_gpu) {
  if (on_device()) return;
  Prng prng(92);
  const ParamLayout layout = compress::layout_of({30'000});
  GuardedPair pair(2, layout, {.density = 0.1}, noise(prng, layout.params(), 0.1f));
  BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 1e-3f)));
  const std::uint64_t in = emulated_bytes_in(), out = emulated_bytes_out();
  BOOST_TEST(pair.guard.beyond(pair.view, pair.gpu_update).value().empty());
  BOOST_TEST(emulated_bytes_in() == in);
  BOOST_TEST(emulated_bytes_out() - out == sizeof(Selection));
}

// Ranks that the CPU looks at whole as well, so that it has the same candidates whatever the guess.
BOOST_AUTO_TEST_CASE(entries_are_left_out_as_on_the_cpu) {
  Prng prng(93);
  std::uint64_t order = 0;
  std::size_t left_out = 0;
  for (const compress::Emit emit : {compress::Emit::threshold, compress::Emit::mean})
    for (const compress::Scope scope : {compress::Scope::global, compress::Scope::tensor}) {
      const ParamLayout layout = compress::layout_of({9'000, 40, 3'000});
      GuardedPair pair(++order, layout, {.density = 0.02, .emit = emit, .scope = scope},
                       weights_near_the_end(prng, layout.params(), 6));
      for (int step = 0; step < 8; ++step) {
        BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), step == 4 ? 3.0f : 0.5f)));
        if (step == 2) {  // held back
          pair.cpu.withdraw(pair.cpu_update);
          pair.gpu.withdraw(pair.gpu_update);
          continue;
        }
        left_out += pair.keep_in_range(step % 3 == 1);
        if (step % 2 == 1) pair.check_residual();
      }
      pair.check_residual();
    }
  BOOST_TEST(left_out > 1000u);
}

// Among the candidates of a good guess.
BOOST_AUTO_TEST_CASE(entries_of_a_larger_model_are_left_out) {
  Prng prng(94);
  const ParamLayout layout = compress::layout_of({150'000, 77, 60'000});
  GuardedPair pair(5, layout, {.density = 0.01}, weights_near_the_end(prng, layout.params(), 50));
  std::size_t left_out = 0;
  for (int step = 0; step < 8; ++step) {
    const std::uint64_t looks = pair.gpu.second_looks();
    BOOST_TEST_REQUIRE(pair.absorb(noise(prng, layout.params(), 0.5f)));
    if (pair.gpu.second_looks() == looks) left_out += pair.keep_in_range(step == 5);
  }
  pair.check_residual();
  BOOST_TEST(left_out > 100u);
}

// The first update has no guess. What was sent and what waits are the change, to the bit.
BOOST_AUTO_TEST_CASE(all_parameters_are_looked_at_where_the_guess_was_off) {
  Prng prng(95);
  const ParamLayout layout = compress::layout_of({70'000});
  GuardedPair pair(6, layout, {.density = 0.01}, weights_near_the_end(prng, layout.params(), 5));
  const std::vector<float> change = noise(prng, layout.params(), 0.5f);
  BOOST_TEST_REQUIRE(pair.absorb(change));
  BOOST_TEST_REQUIRE(pair.gpu.second_looks() == 1u);
  std::vector<std::uint32_t> left_out;
  pair.keep_in_range_there(left_out);
  BOOST_TEST(left_out.size() > 50u);
  BOOST_TEST(pair.gpu_update.count == pair.gpu.target_entries());
  const compress::SparseUpdate sent = pair.gpu_update.read().value();
  BOOST_TEST((compress::decode(layout, pair.codec.encode(pair.gpu_update).value()).value() == sent));
  BOOST_TEST(pair.guard_here().beyond(layout, sent).empty());
  std::vector<float> expected = change;
  const float worth = std::ldexp(static_cast<float>(sent.step), -24);
  for (std::size_t e = 0; e < sent.index.size(); ++e) {
    BOOST_TEST((std::find(left_out.begin(), left_out.end(), sent.index[e]) == left_out.end()));
    expected[sent.index[e]] -= sent.negative[e] != 0 ? -worth : worth;
  }
  const std::vector<float> waits = pair.gpu.residual().value();
  BOOST_TEST(std::memcmp(waits.data(), expected.data(), waits.size() * sizeof(float)) == 0);
}

BOOST_AUTO_TEST_CASE(an_update_of_which_all_waits_is_empty) {
  const ParamLayout layout = compress::layout_of({3});
  GuardedPair pair(7, layout, {.density = 1}, {limit, limit, -limit});
  BOOST_TEST_REQUIRE(pair.absorb({1.0f, 2.0f, -3.0f}));
  BOOST_TEST(pair.keep_in_range(false) == 3u);
  BOOST_TEST(pair.gpu_update.count == 0u);
  pair.check_residual();
  BOOST_TEST_REQUIRE(pair.absorb({-9.0f, 0.0f, 0.0f}));
  BOOST_TEST(pair.keep_in_range(false) == 2u);
  BOOST_TEST(pair.gpu_update.count == 1u);
  pair.check_residual();
}

BOOST_AUTO_TEST_SUITE_END()
