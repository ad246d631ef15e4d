// Figures against numbers worked out by hand.
#include "compress/statistics.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(statistics)

BOOST_AUTO_TEST_CASE(bound_of_small_numbers) {
  BOOST_TEST(bound_bits(10, 0) == 0);
  BOOST_TEST(bound_bits(10, 10) == 10, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(bound_bits(4, 2) == std::log2(6.0) + 2, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(bound_bits(300, 2) == std::log2(300.0 * 299 / 2) + 2, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(bound_of_large_numbers) {
  double bits = 1000;  // the product formula, term by term
  for (int i = 0; i < 1000; ++i) bits += std::log2((1e6 - i) / (i + 1));
  BOOST_TEST(bound_bits(1'000'000, 1000) == bits, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(layouts_by_hand) {
  // 70,000 parameters: two chunks of 65,536 and eighteen of 4,096.
  const ParamLayout layout = layout_of({70'000});
  const SparseUpdate update{.step = 5, .index = {3, 200, 69'999}, .negative = {0, 1, 0}};
  Statistics statistics(layout, 24);
  statistics.add(update, true);
  const LayoutBytes& layouts = statistics.layouts();
  BOOST_TEST(layouts.u32 == 12u);
  BOOST_TEST(layouts.u16_chunk == (1u + 4 + 1) + (1 + 2 + 1));
  BOOST_TEST(layouts.packed12_chunk == (1u + 3 + 1) + 16 + (1 + 2 + 1));
  BOOST_TEST(layouts.leb128_gaps == 1u + 2 + 3);  // 3·2, 196·2 + 1, 69,798·2
  // Gaps 3, 196, 69,798: K = 15 costs 3·17 + 2 quotient bits, K = 16 3·18 + 1, K = 14 3·16 + 4 = 52.
  BOOST_TEST(layouts.rice_gaps == 1u + 1 + 7);
  BOOST_TEST(layouts.zstd19_gaps > 6u);
  BOOST_TEST(layouts.rumor == statistics.payload_bytes());
  BOOST_TEST(layouts.rumor_adapt > 0u);
  BOOST_TEST(layouts.rumor_adapt <= layouts.rumor);
  BOOST_TEST(layouts.rumor_link <= layouts.rumor);
  std::uint64_t segments = 0;
  for (const auto& [name, count] : statistics.modes().named()) segments += count;
  BOOST_TEST(segments == 1u);
  BOOST_TEST((statistics.tensors()[0].modes.named() == statistics.modes().named()));
  BOOST_TEST(statistics.round_trip_exact());
}

BOOST_AUTO_TEST_CASE(totals_by_hand) {
  // The worked example of compress/FORMAT.md: 3 + 10 bits for a, 3 + 4 for b, 7 for the step, 8 for the head.
  const ParamLayout layout = layout_of({16, 4});
  Statistics statistics(layout, 2);
  statistics.add({.step = 100, .index = {3, 9, 18}, .negative = {0, 1, 0}}, false);
  statistics.add({}, false);
  BOOST_TEST(statistics.updates() == 2u);
  BOOST_TEST(statistics.entries() == 3u);
  BOOST_TEST(statistics.payload_bytes() == 6u);
  BOOST_TEST(statistics.density() == 3.0 / 40);
  BOOST_TEST(statistics.bits_per_entry() == 16.0);
  BOOST_TEST(statistics.bound_bits_per_entry() == (std::log2(1140.0) + 3) / 3,
             boost::test_tools::tolerance(1e-12));
  BOOST_TEST(statistics.ratio() == 160.0 / 6);
  BOOST_TEST(statistics.tensors()[0].entries == 2u);
  BOOST_TEST(statistics.tensors()[0].bits == 13u);
  BOOST_TEST(statistics.tensors()[1].bits == 7u);
  BOOST_TEST(statistics.update_bytes_mean() == 3.0);
  BOOST_TEST(statistics.tensors()[0].threshold == 25.0);
  BOOST_TEST(statistics.tensors()[0].mass == 50.0);
  BOOST_TEST(statistics.tensors()[1].mass == 25.0);
  BOOST_TEST(statistics.tensors()[0].bound_bits == std::log2(120.0) + 2, boost::test_tools::tolerance(1e-12));
  BOOST_REQUIRE(statistics.history().size() == 2u);
  BOOST_TEST(statistics.history()[0].threshold == 25.0);
  BOOST_TEST(statistics.history()[0].entries == 3u);
  BOOST_TEST(statistics.history()[1].entries == 0u);
  BOOST_TEST(statistics.history()[1].threshold == 0.0);
}

BOOST_AUTO_TEST_CASE(shares_add_up_to_the_payload) {
  Prng prng(31);
  for (int round = 0; round < 200; ++round) {
    const ParamLayout layout = random_layout(prng, 6, 500);
    SparseUpdate update = any_update(prng, layout);
    if (update.index.empty()) continue;
    update.step = 100;  // seven bits: six are sent, and the flag
    Statistics statistics(layout, 24);
    statistics.add(update, false);
    std::uint64_t bits = 8 + 7;
    for (const TensorTotals& tensor : statistics.tensors()) bits += tensor.bits;
    BOOST_TEST_REQUIRE((bits + 7) / 8 == statistics.payload_bytes());
  }
}

BOOST_AUTO_TEST_CASE(nothing_yet) {
  const ParamLayout layout = layout_of({16});
  const Statistics statistics(layout, 24);
  BOOST_TEST(statistics.density() == 0);
  BOOST_TEST(statistics.bits_per_entry() == 0);
  BOOST_TEST(statistics.ratio() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
