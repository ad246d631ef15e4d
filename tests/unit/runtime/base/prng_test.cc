// The numbers here come from a separate implementation in another language, not from this one: equal streams
// on every machine are what makes a run repeatable.
#include "runtime/base/prng.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <vector>

namespace rumor {
namespace {

using Draws = std::vector<std::uint64_t>;

Draws draw(Prng generator, std::size_t count) {
  Draws draws;
  for (std::size_t i = 0; i < count; ++i) draws.push_back(generator.next());
  return draws;
}

void check_equal(const Draws& found, const Draws& expected) {
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE(prng)

BOOST_AUTO_TEST_CASE(mixer_is_splitmix64) {
  static_assert(mix64(0) == 0xe220a8397b1dcdaf);
  static_assert(mix64(1) == 0x910a2dec89025cc1);
  BOOST_TEST(mix64(~std::uint64_t{0}) == 0xe4d971771b652c20u);
}

BOOST_AUTO_TEST_CASE(streams_are_the_same_everywhere) {
  check_equal(draw(Prng(0), 4),
              {0x1a70a846bd9cc2a9, 0x6a0ef250cd2b9e80, 0x61325a7589c2ff27, 0x21ccf8536a2bb70a});
  check_equal(draw(Prng(42), 4),
              {0x5c8961e1f2055d33, 0xe182e8e848466886, 0x9f7313650e290a18, 0xe6c0f551804ef0bb});
  check_equal(draw(Prng(~std::uint64_t{0}), 4),
              {0x8defbd3346f3593a, 0x41a928faae78060c, 0xdde9bccaf1cd0233, 0x939e26ae8c3a89e7});
  BOOST_TEST(draw(Prng(7), 1000).back() == 0x669cc413e12ee03fu);
}

BOOST_AUTO_TEST_CASE(named_streams_are_the_same_everywhere_and_differ) {
  check_equal(draw(Prng::named(5, "batches"), 2), {0x40c20226a95f978a, 0xdae84bb60f1704a8});
  check_equal(draw(Prng::named(5, "batches", 1), 2), {0xa042c5424bbfabef, 0xc11c81b9ae5eee1b});
  check_equal(draw(Prng::named(5, "faults"), 2), {0xd081fdef6d38f7d5, 0xcb1e2c84780ae695});
  Draws all;
  for (const auto* purpose : {"", "a", "b", "ab", "ba"})
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      for (std::uint64_t index = 0; index < 3; ++index)
        all.push_back(Prng::named(seed, purpose, index).next());
  std::sort(all.begin(), all.end());
  BOOST_TEST((std::adjacent_find(all.begin(), all.end()) == all.end()), "two named streams begin alike");
}

BOOST_AUTO_TEST_CASE(below_is_the_same_everywhere) {
  Prng small(3);
  Draws found;
  for (int i = 0; i < 16; ++i) found.push_back(small.below(10));
  check_equal(found, {4, 6, 0, 0, 0, 6, 1, 8, 2, 8, 4, 0, 9, 6, 9, 5});
  // Half of all draws are thrown away with this bound: the worst case of the rejection.
  const std::uint64_t bound = (std::uint64_t{1} << 63) + 1;
  Prng large(3);
  found.clear();
  for (int i = 0; i < 3; ++i) found.push_back(large.below(bound));
  check_equal(found, {0x617fdb0656ca3637, 0x378d0abd5f8adaf, 0x24d02d1e6ed6cde5});
}

// With bound 3 * 2^62 a plain remainder would give the first third twice the weight of the others: 2, 1, 1.
BOOST_AUTO_TEST_CASE(below_is_unbiased_where_a_remainder_is_not) {
  const std::uint64_t third = std::uint64_t{1} << 62;
  std::array<int, 3> hits{};
  Prng generator(11);
  for (int i = 0; i < 30'000; ++i) ++hits.at(generator.below(3 * third) / third);
  for (const int count : hits)
    BOOST_TEST(std::abs(count - 10'000) < 500, "one third was drawn " << count << " times");
}

BOOST_AUTO_TEST_CASE(below_stays_below) {
  Prng generator(1);
  for (const std::uint64_t bound : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, ~std::uint64_t{0}})
    for (int i = 0; i < 200; ++i) BOOST_TEST_REQUIRE(generator.below(bound) < bound);
}

BOOST_AUTO_TEST_CASE(between_reaches_both_ends_and_no_further) {
  Prng generator(2);
  std::array<int, 4> hits{};
  for (int i = 0; i < 400; ++i) ++hits.at(static_cast<std::size_t>(generator.between(-2, 1) + 2));
  for (const int count : hits) BOOST_TEST(count > 50);
  BOOST_TEST(generator.between(-9, -9) == -9);
}

BOOST_AUTO_TEST_CASE(chance_is_as_likely_as_asked) {
  Prng generator(4);
  int hits = 0;
  for (int i = 0; i < 8'000; ++i) hits += generator.chance(1, 4) ? 1 : 0;
  BOOST_TEST(std::abs(hits - 2'000) < 200);
  for (int i = 0; i < 100; ++i) BOOST_TEST_REQUIRE(!generator.chance(0, 5));
  for (int i = 0; i < 100; ++i) BOOST_TEST_REQUIRE(generator.chance(5, 5));
}

BOOST_AUTO_TEST_CASE(shuffle_is_the_same_everywhere) {
  std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7};
  Prng(9).shuffle(std::span<int>(items));
  BOOST_TEST(items == (std::vector<int>{1, 3, 2, 7, 0, 4, 6, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shuffle_gives_every_order_its_share) {
  std::array<int, 6> hits{};
  Prng generator(10);
  for (int i = 0; i < 6'000; ++i) {
    std::array<int, 3> items = {0, 1, 2};
    generator.shuffle(std::span<int>(items));
    ++hits.at(static_cast<std::size_t>(items[0] * 2 + (items[1] > items[2] ? 1 : 0)));
  }
  for (const int count : hits) BOOST_TEST(std::abs(count - 1'000) < 150);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
