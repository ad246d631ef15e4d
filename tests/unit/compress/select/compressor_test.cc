// Selection: exactly k, nothing lost, the same on every path.
#include "compress/select/compressor.h"

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/shortened.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(compressor)

namespace {

// A sum of uniform numbers: many small changes, few large ones, all of them whole multiples of 2^-23 below
// 2^-3.
std::vector<float> random_delta(Prng& prng, std::size_t params) {
  std::vector<float> delta(params);
  for (float& value : delta) {
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += prng.between(-30'000, 30'000);
    value = static_cast<float>(std::ldexp(static_cast<double>(sum), -23));
  }
  return delta;
}

// The k largest magnitudes of the residual, ties by lowest position: by the order of all.
std::vector<std::uint32_t> largest(std::span<const float> residual, std::size_t k) {
  std::vector<std::uint32_t> order(residual.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const float one = std::abs(residual[a]), other = std::abs(residual[b]);
    return one > other || (one == other && a < b);
  };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), before);
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

double grid(std::int32_t step) {
  return std::ldexp(static_cast<double>(step), -24);
}

}  // namespace

BOOST_AUTO_TEST_CASE(selects_the_k_largest_every_time) {
  Prng prng(11);
  const ParamLayout layout = layout_of({5000, 3, 997, 1});
  for (const double density : {0.0002, 0.001, 0.01, 0.2, 1.0}) {
    Compressor compressor(layout, {.density = density});
    std::vector<float> before(layout.params(), 0.0f);
    SparseUpdate out;
    for (int round = 0; round < 40; ++round) {
      std::vector<float> delta = random_delta(prng, layout.params());
      if (round == 20)  // the threshold jumps up, later it has to come down again
        for (float& value : delta) value *= 64;
      for (std::size_t i = 0; i < before.size(); ++i) before[i] += delta[i];
      BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
      BOOST_TEST_REQUIRE(out.index.size() == compressor.target_entries());
      BOOST_TEST_REQUIRE((out.index == largest(before, out.index.size())));
      std::size_t wrong_signs = 0;
      for (std::size_t e = 0; e < out.index.size(); ++e)
        wrong_signs += (out.negative[e] == 1) != (before[out.index[e]] < 0);
      BOOST_TEST_REQUIRE(wrong_signs == 0u);
      before.assign(compressor.residual().begin(), compressor.residual().end());
    }
  }
}

BOOST_AUTO_TEST_CASE(what_was_sent_and_what_is_kept_is_what_was_learned) {
  Prng prng(12);
  const ParamLayout layout = layout_of({3000, 100, 10});
  for (const Emit emit : {Emit::threshold, Emit::mean}) {
    Compressor compressor(layout, {.density = 0.01, .emit = emit});
    std::vector<double> learned(layout.params(), 0), sent(layout.params(), 0);
    SparseUpdate out;
    for (int round = 0; round < 200; ++round) {
      const std::vector<float> delta = random_delta(prng, layout.params());
      for (std::size_t i = 0; i < learned.size(); ++i) learned[i] += delta[i];
      BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
      for (std::size_t e = 0; e < out.index.size(); ++e)
        sent[out.index[e]] += out.negative[e] ? -grid(out.step) : grid(out.step);
    }
    // All numbers are whole multiples of 2^-24 and small, so even the float sums are exact.
    for (std::size_t i = 0; i < learned.size(); ++i)
      BOOST_TEST_REQUIRE(sent[i] + static_cast<double>(compressor.residual()[i]) == learned[i]);
  }
}

// Once for each update, by its entries; nothing where none was sent.
BOOST_AUTO_TEST_CASE(what_stays_fades_by_what_was_sent) {
  const ParamLayout layout = layout_of({4, 4});
  const std::vector<float> delta{0.5f, -0.25f, 0.125f, 0.0625f, 0, 0, 0, 0}, nothing(8, 0.0f);
  SparseUpdate out;
  for (const bool looks : {false, true}) {
    Compressor compressor(layout, {.density = 2.0 / 8, .emit = Emit::mean, .residual_decay = 0.5});
    BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());  // of 0.375 each
    if (looks) BOOST_TEST(compressor.residual()[2] == 0.125f * 0.875f);
    if (looks) BOOST_TEST(compressor.residual()[0] == 0.125f * 0.875f);
    BOOST_TEST_REQUIRE(compressor.absorb(nothing, out).ok());
    compressor.withdraw(out);
    BOOST_TEST(compressor.residual()[2] == 0.125f * 0.875f);
    BOOST_TEST_REQUIRE(compressor.absorb(nothing, out).ok());
    compressor.shrink(1, out);
    BOOST_TEST(compressor.residual()[3] == 0.0625f * 0.875f * 0.9375f);
    compressor.set_decay(0);
    BOOST_TEST_REQUIRE(compressor.absorb(nothing, out).ok());
    BOOST_TEST(compressor.residual()[3] == 0.0625f * 0.875f * 0.9375f);
  }
}

BOOST_AUTO_TEST_CASE(the_step_is_the_threshold_or_the_mean_on_the_grid) {
  const ParamLayout layout = layout_of({8});
  const std::vector<float> delta{0.5f, -0.25f, 0.125f, 0, 0, 0.1f, 0, -0.01f};
  SparseUpdate out;
  Compressor by_threshold(layout, {.density = 3.0 / 8});
  BOOST_TEST_REQUIRE(by_threshold.absorb(delta, out).ok());
  BOOST_TEST((out.index == std::vector<std::uint32_t>{0, 1, 2}));
  BOOST_TEST((out.negative == std::vector<std::uint8_t>{0, 1, 0}));
  BOOST_TEST(out.step == 1 << 21);
  BOOST_TEST(by_threshold.residual()[0] == 0.375f);
  BOOST_TEST(by_threshold.residual()[1] == -0.125f);
  BOOST_TEST(by_threshold.residual()[2] == 0.0f);
  BOOST_TEST(by_threshold.stats().threshold == 0.125);
  BOOST_TEST(by_threshold.stats().tensors[0].entries == 3u);

  Compressor by_mean(layout, {.density = 2.0 / 8, .emit = Emit::mean});
  BOOST_TEST_REQUIRE(by_mean.absorb(delta, out).ok());
  BOOST_TEST(grid(out.step) == 0.375);
  BOOST_TEST(by_mean.residual()[0] == 0.125f);
  BOOST_TEST(by_mean.residual()[1] == 0.125f);
  BOOST_TEST(by_mean.stats().step == 0.375);
}

BOOST_AUTO_TEST_CASE(ties_go_by_lowest_position_and_never_beyond_k) {
  const ParamLayout layout = layout_of({1000});
  Compressor compressor(layout, {.density = 0.01});
  const std::vector<float> delta(1000, -0.5f);
  SparseUpdate out;
  for (std::uint32_t round = 0; round < 3; ++round) {
    BOOST_TEST_REQUIRE(compressor.absorb(round == 0 ? delta : std::vector<float>(1000, 0.0f), out).ok());
    BOOST_TEST_REQUIRE(out.index.size() == 10u);
    BOOST_TEST(out.index.front() == 10 * round);
    BOOST_TEST(out.index.back() == 10 * round + 9);
  }
}

// As after the first step of Adam. Candidates would be all.
BOOST_AUTO_TEST_CASE(changes_that_are_equal_or_nearly_take_no_more_memory) {
  const ParamLayout layout = layout_of({900'000, 12'000});
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    for (const std::uint32_t apart : {0u, 1u, 3u}) {  // in the last bits
      Compressor compressor(layout, {.density = 0.001, .scope = scope});
      std::vector<float> delta(layout.params());
      for (std::uint32_t i = 0; i < delta.size(); ++i)
        delta[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(i % 3 == 0 ? -0.01f : 0.01f) + i % 1000 * apart);
      std::vector<float> before(layout.params(), 0.0f);
      SparseUpdate out;
      for (std::uint64_t round = 0; round < rumor::test::shortened(3); ++round) {
        for (std::size_t i = 0; i < before.size(); ++i) before[i] += delta[i];
        BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
        BOOST_TEST_REQUIRE(out.index.size() == 912u);
        if (scope == Scope::global) BOOST_TEST_REQUIRE((out.index == largest(before, 912)));
        before.assign(compressor.residual().begin(), compressor.residual().end());
      }
      BOOST_TEST(compressor.entry_bytes() < 8 * layout.params() / 3);  // a third of what all would take
    }
  }
}

// The guess of the threshold is a hundred times too low: there are far more candidates than entries, for once.
BOOST_AUTO_TEST_CASE(memory_of_a_wrong_guess_is_given_back) {
  Prng prng(14);
  const ParamLayout layout = layout_of({1 << 20});
  Compressor compressor(layout, {.density = 0.01});
  std::vector<float> delta = random_delta(prng, layout.params());
  SparseUpdate out;
  for (const float scale : {0.001f, 1.0f, 0.001f}) {
    for (float& value : delta) value *= scale;
    BOOST_REQUIRE(compressor.absorb(delta, out).ok());
    BOOST_TEST(out.index.size() == compressor.target_entries());
    for (float& value : delta) value /= scale;
  }
  BOOST_TEST(compressor.entry_bytes() < 40 * compressor.target_entries(), compressor.entry_bytes());
}

BOOST_AUTO_TEST_CASE(fewer_only_when_fewer_are_worth_a_grid_unit) {
  const ParamLayout layout = layout_of({100});
  Compressor compressor(layout, {.density = 0.1});
  std::vector<float> delta(100, std::ldexp(1.0f, -26));
  delta[7] = 0.5f;
  delta[50] = -0.25f;
  delta[60] = std::ldexp(1.0f, -25);  // half a unit: rounds up to one
  SparseUpdate out;
  BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
  BOOST_TEST((out.index == std::vector<std::uint32_t>{7, 50, 60}));
  BOOST_TEST(out.step == 1);
  Compressor idle(layout, {.density = 0.1});
  for (int round = 0; round < 2; ++round) {
    BOOST_TEST_REQUIRE(idle.absorb(std::vector<float>(100, 0.0f), out).ok());
    BOOST_TEST((out == SparseUpdate{}));
  }
}

BOOST_AUTO_TEST_CASE(a_change_that_is_not_a_number_names_its_tensor) {
  const ParamLayout layout = layout_of({100, 20, 30});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const bool warm : {false, true}) {
      Compressor compressor(layout, {.density = 0.05});
      std::vector<float> delta(150, 0.25f);
      SparseUpdate out;
      if (warm) BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
      delta[104] = bad;
      const Result<void> result = compressor.absorb(delta, out);
      BOOST_TEST_REQUIRE(!result.ok());
      BOOST_TEST((result.error().code == Errc::limit));
      BOOST_TEST(result.error().text.find("tensor t1 has") != std::string::npos);
      BOOST_TEST(result.error().text.find("position 4;") != std::string::npos);
      BOOST_TEST((out == SparseUpdate{}));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_change_beyond_the_grid_is_refused) {
  const ParamLayout layout = layout_of({10});
  Compressor compressor(layout, {.density = 0.1});
  SparseUpdate out;
  const Result<void> result = compressor.absorb(std::vector<float>(10, 1e6f), out);
  BOOST_TEST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().text.find("beyond what the weight grid") != std::string::npos);
  BOOST_TEST((out == SparseUpdate{}));
}

BOOST_AUTO_TEST_CASE(the_residual_can_be_put_back) {
  Prng prng(13);
  const ParamLayout layout = mlp_layout();
  Compressor first(layout, {}), second(layout, {});
  SparseUpdate out, again;
  for (int round = 0; round < 3; ++round)
    BOOST_TEST_REQUIRE(first.absorb(random_delta(prng, layout.params()), out).ok());
  second.restore_residual(first.residual());
  const std::vector<float> delta = random_delta(prng, layout.params());
  BOOST_TEST_REQUIRE(first.absorb(delta, out).ok());
  BOOST_TEST_REQUIRE(second.absorb(delta, again).ok());
  BOOST_TEST((out == again));
  BOOST_TEST(std::equal(first.residual().begin(), first.residual().end(), second.residual().begin()));
}

BOOST_AUTO_TEST_CASE(entries_aimed_at) {
  const ParamLayout layout = mlp_layout();
  Compressor compressor(layout, {.density = 0.001});
  BOOST_TEST(compressor.target_entries() == 118u);
  compressor.set_density(0.003);
  BOOST_TEST(compressor.target_entries() == 355u);
  compressor.set_density(1e-9);
  BOOST_TEST(compressor.target_entries() == 1u);
  compressor.set_density(1);
  BOOST_TEST(compressor.target_entries() == layout.params());
}

BOOST_AUTO_TEST_CASE(figures_of_the_residual) {
  const ParamLayout layout = layout_of({4, 2});
  Compressor compressor(layout, {.density = 1.0 / 6});
  SparseUpdate out;
  BOOST_TEST_REQUIRE(compressor.absorb(std::vector<float>{0, 0, 1, 0, 0.25f, 0.25f}, out).ok());
  const CompressorStats stats = compressor.stats();
  BOOST_TEST(stats.tensors.size() == 2u);
  BOOST_TEST(stats.tensors[0].entries == 1u);
  BOOST_TEST(stats.tensors[0].residual_rms == 0);
  BOOST_TEST(stats.tensors[1].entries == 0u);
  BOOST_TEST(stats.tensors[1].residual_rms == 0.25);
}

BOOST_AUTO_TEST_SUITE_END()
