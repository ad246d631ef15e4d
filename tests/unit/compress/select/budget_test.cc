// Budgets in bytes: never above, close below, from measured bits.
#include "compress/select/budget.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/shortened.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(budget)

namespace {

std::vector<float> bell(Prng& prng, std::size_t params, float scale) {
  std::vector<float> delta(params);
  for (float& value : delta)
    value = static_cast<float>(prng.between(-9999, 9999) + prng.between(-9999, 9999)) * scale;
  return delta;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_update_is_larger_than_its_bytes_and_the_mean_is_close) {
  const ParamLayout layout = mlp_layout();
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    for (const double budget : {150.0, 500.0, 2000.0, 8000.0}) {
      Prng prng(41);
      Compressor compressor(layout, {.scope = scope});
      ByteBudget bytes(layout.params(), {.bytes_per_update = budget});
      double sum = 0;
      constexpr int rounds = static_cast<int>(rumor::test::shortened(50));
      SparseUpdate update;
      for (int round = 0; round < rounds; ++round) {
        compressor.set_entries(bytes.plan(0));
        BOOST_TEST_REQUIRE(bytes.bytes_max() == budget);
        const float scale = round % 10 == 5 ? 1e-5f : 1e-7f;
        BOOST_TEST_REQUIRE(compressor.absorb(bell(prng, layout.params(), scale), update).ok());
        const Bytes payload = encode_within(compressor, layout, update, bytes.bytes_max());
        BOOST_TEST_REQUIRE(payload.size() <= budget);
        BOOST_TEST_REQUIRE((decode(layout, payload).value() == update));
        bytes.sent(update.index.size(), payload.size());
        if (round >= 3) sum += static_cast<double>(payload.size());
      }
      BOOST_TEST(sum / (rounds - 3) >= 0.96 * budget, budget << ": " << sum / (rounds - 3));
    }
  }
}

BOOST_AUTO_TEST_CASE(bytes_a_second_hold_whatever_the_intervals) {
  Prng prng(42);
  const ParamLayout layout = mlp_layout();
  Compressor compressor(layout, {});
  ByteBudget bytes(layout.params(), {.bytes_per_second = 50'000});
  double sum = 0, time = 0;
  SparseUpdate update;
  for (int round = 0; round < static_cast<int>(rumor::test::shortened(300)); ++round) {
    const double seconds = round == 0 ? 0 : static_cast<double>(prng.between(4, 30)) / 1000;
    const std::uint32_t entries = bytes.plan(seconds);
    compressor.set_entries(entries);
    BOOST_TEST_REQUIRE(compressor.absorb(bell(prng, layout.params(), 1e-7f), update).ok());
    const Bytes payload = encode_within(compressor, layout, update, bytes.bytes_max());
    BOOST_TEST_REQUIRE((payload.size() <= bytes.bytes_max() || update.index.size() == 1));
    bytes.sent(update.index.size(), payload.size());
    time += seconds;
    sum += static_cast<double>(payload.size());
    if (round > 20) BOOST_TEST_REQUIRE(sum <= 50'000 * time + 100);
  }
  BOOST_TEST(sum >= 0.97 * 50'000 * time);
}

BOOST_AUTO_TEST_CASE(a_long_pause_is_not_made_up_for_at_once) {
  ByteBudget bytes(100'000, {.bytes_per_second = 10'000});
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t entries = bytes.plan(0.1);
    bytes.sent(entries, entries * 12 / 8);
  }
  bytes.plan(100);
  BOOST_TEST(bytes.bytes_max() <= 4 * 10'000 * 26.0);  // the pause moved the mean interval by a quarter
  BOOST_TEST(bytes.plan(0) <= 20'000u);
}

BOOST_AUTO_TEST_CASE(too_little_for_an_entry_still_sends_one) {
  const ParamLayout layout = mlp_layout();
  Compressor compressor(layout, {});
  ByteBudget bytes(layout.params(), {.bytes_per_update = 1});
  Prng prng(43);
  SparseUpdate update;
  for (int round = 0; round < 3; ++round) {
    compressor.set_entries(bytes.plan(0));
    BOOST_TEST_REQUIRE(compressor.absorb(bell(prng, layout.params(), 1e-7f), update).ok());
    bytes.sent(update.index.size(), encode_within(compressor, layout, update, bytes.bytes_max()).size());
    BOOST_TEST(update.index.size() == 1u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
