// The end of the grid: which entries wait, that others take their places, and that nothing is lost.
#include "compress/select/range_guard.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "compress/select/budget.h"
#include "compress/select/compressor.h"
#include "runtime/base/grid_range.h"
#include "runtime/base/prng.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(range_guard)

namespace {

// From -1 to 1.
float noise(Prng& prng) { return static_cast<float>(prng.below(2001)) * 1e-3f - 1; }

constexpr std::uint32_t first = 5000, second = 300, params = first + second;
const float unit = std::ldexp(1.0f, -24);

ParamLayout two_tensors() { return ParamLayout::create({{"body", {first}}, {"head", {second}}}).value(); }

// Changes of one tenth, in both directions, and weights of one.
struct Fixture {
  ParamLayout layout = two_tensors();
  std::vector<float> weights = std::vector<float>(params, 1.0f), change = std::vector<float>(params);

  Fixture() {
    Prng prng(7);
    for (float& one : change) one = 0.1f * noise(prng);
  }
  RangeGuard guard() { return RangeGuard({weights, unit}); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_entry_is_found_where_it_leads_outwards_beyond_three_quarters) {
  Fixture f;
  SparseUpdate update;
  update.step = 1 << 24;  // one
  update.index = {0, 1, 2, 3, 4};
  update.negative = {0, 1, 1, 0, 1};
  f.weights[0] = 95.5f;   // to 96.5
  f.weights[1] = 97.5f;   // back to 96.5
  f.weights[2] = -95.5f;  // to -96.5
  f.weights[3] = 94.5f;
  const std::vector<std::uint32_t> wanted = {0, 2};
  BOOST_TEST(f.guard().beyond(f.layout, update) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(weights_on_the_grid_are_as_good_as_floats) {
  Fixture f;
  std::vector<std::int32_t> weights(params, 1 << 24);
  SparseUpdate update;
  update.step = 1 << 24;
  update.index = {0, 1};
  update.negative = {0, 0};
  weights[0] = 95 << 24;
  weights[1] = 96 << 24;
  const std::vector<std::uint32_t> wanted = {1};
  BOOST_TEST(RangeGuard(WeightView{weights, unit}).beyond(f.layout, update) == wanted,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_below_the_grain_of_a_float_counts) {
  Fixture f;
  f.weights[5] = 96;
  SparseUpdate update;
  update.step = 30;  // a float beside 96 is 128 units away
  update.index = {5};
  update.negative = {0};
  BOOST_TEST(f.guard().beyond(f.layout, update).size() == 1u);
  update.negative = {1};
  BOOST_TEST(f.guard().beyond(f.layout, update).empty());
}

BOOST_AUTO_TEST_CASE(what_waits_stays_in_the_residual_and_the_next_largest_take_its_place) {
  for (const Emit emit : {Emit::threshold, Emit::mean})
    for (const Scope scope : {Scope::global, Scope::tensor}) {
      Fixture f;
      for (std::uint32_t i = 100; i < 140; ++i) {
        f.weights[i] = 96;
        f.change[i] = 50;  // would be the largest by far, and the step with them
      }
      Compressor compressor(f.layout, {.density = 0.02, .emit = emit, .scope = scope});
      std::vector<double> sent(params, 0.0);
      std::vector<float> all(params, 0.0f);
      for (int round = 0; round < 4; ++round) {
        SparseUpdate update;
        BOOST_REQUIRE(compressor.absorb(f.change, update).ok());
        for (std::uint32_t i = 0; i < params; ++i) all[i] += f.change[i];
        CompressorEntries chosen(compressor, f.layout, update, {}, {.guard = f.guard()});
        BOOST_TEST(chosen.left_out().size() >= 40u);
        BOOST_TEST(chosen.count() + 41 >= compressor.target_entries());
        if (round > 0) BOOST_TEST(chosen.count() == compressor.target_entries());
        for (const StepRun& run : step_runs(f.layout, update))
          for (std::size_t e = run.first; e < run.first + run.count; ++e) {
            BOOST_TEST(static_cast<float>(run.step) * unit < 1.0f);
            BOOST_REQUIRE((update.index[e] < 100 || update.index[e] >= 140));
            sent[update.index[e]] += (update.negative[e] != 0 ? -1.0 : 1.0) * std::ldexp(run.step, -24);
          }
      }
      const std::span<const float> waits = compressor.residual();
      for (std::uint32_t i = 0; i < params; ++i) BOOST_REQUIRE(std::abs(sent[i] + waits[i] - all[i]) < 1e-4);
    }
}

BOOST_AUTO_TEST_CASE(a_share_of_an_entry_counts_as_what_it_moves) {
  Fixture f;
  f.weights[7] = 95;
  f.change[7] = 8;  // the largest; a quarter of it would be beyond
  Compressor compressor(f.layout, {.density = 1.0 / params});
  SparseUpdate update;
  BOOST_REQUIRE(compressor.absorb(f.change, update).ok());
  CompressorEntries quarter(compressor, f.layout, update, {}, {.peers = 4, .guard = f.guard()});
  BOOST_TEST(quarter.left_out().size() == 1u);
  f.weights[7] = 90;
  BOOST_REQUIRE(compressor.absorb(std::vector<float>(params, 0.0f), update).ok());
  CompressorEntries again(compressor, f.layout, update, {}, {.peers = 4, .guard = f.guard()});
  BOOST_TEST(again.left_out().empty());
  BOOST_TEST(update.index.at(0) == 7u);
}

BOOST_AUTO_TEST_CASE(a_grid_has_room_for_eight_times_the_largest_weight) {
  BOOST_TEST(grid_bits_for(0.3, 24) == 24);
  BOOST_TEST(grid_bits_for(16, 24) == 24);
  BOOST_TEST(grid_bits_for(16.1, 24) == 23);
  BOOST_TEST(grid_bits_for(1e30, 24) == 8);
  BOOST_TEST(range_of(24) == 128);
  const std::string text = range_end_text(two_tensors(), first + 3, 96.5, 24);
  for (const char* part : {"weight 3 of tensor head", "96.50", "128", "compress.grid_bits = 22", "512"})
    BOOST_TEST_CONTEXT(text) BOOST_TEST(text.find(part) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
