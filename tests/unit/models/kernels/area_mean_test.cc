// Area means: exact values, what they keep, and the backward pass as the transpose of the forward one.
#include "models/kernels/area_mean.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "models/kernels/kernels.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"
#include "runtime/base/sha256.h"

namespace rumor::models {

BOOST_AUTO_TEST_SUITE(area_mean)

namespace {

using Floats = std::vector<float>;

Floats drawn(std::uint64_t seed, std::size_t count) {
  Prng prng(seed);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(prng.between(-1000, 1000)) / 1024;
  return values;
}

Floats resized(std::uint32_t from, std::uint32_t to, const Floats& x, std::uint32_t planes = 1) {
  Floats y(std::size_t{planes} * to * to, 99.0f);
  LargeVector<float> scratch;
  AreaMean(from, to).planes(planes, x.data(), y.data(), scratch);
  return y;
}

double mean(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Each pair of sizes that a test walks through: down, up, in whole numbers and not.
constexpr std::uint32_t sides[][2] = {{28, 14}, {28, 8}, {28, 16}, {32, 24}, {7, 3},
                                      {3, 7},   {4, 7},  {1, 5},   {5, 1},   {6, 6}};

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_ratio_is_the_plain_mean) {
  const Floats x = drawn(1, 2 * 16), y = resized(4, 2, x, 2);
  for (std::size_t plane = 0; plane < 2; ++plane)
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t column = 0; column < 2; ++column) {
        const float* at = x.data() + plane * 16 + row * 8 + column * 2;
        BOOST_TEST(y[plane * 4 + row * 2 + column] == (at[0] + at[1] + at[4] + at[5]) / 4);
      }
}

BOOST_AUTO_TEST_CASE(a_pixel_under_two_counts_by_its_share) {
  // 3 to 2: the middle row and column belong to both sides, by half.
  const Floats y = resized(3, 2, {0, 3, 6, 9, 12, 15, 18, 21, 24});
  const float expected[] = {4, 8, 16, 20};  // the first: (0 + 3 / 2 + 9 / 2 + 12 / 4) / (9 / 4)
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(std::abs(y[i] - expected[i]) < 4e-6f);
  // 2 to 3: the corners are the old pixels, the rest lies between them.
  const Floats wide = resized(2, 3, {1, 2, 3, 4});
  const float stretched[] = {1, 1.5f, 2, 2, 2.5f, 3, 3, 3.5f, 4};
  for (std::size_t i = 0; i < 9; ++i) BOOST_TEST(wide[i] == stretched[i]);
}

BOOST_AUTO_TEST_CASE(constants_and_means_stay) {
  for (const auto [from, to] : sides) {
    const std::size_t count = std::size_t{from} * from;
    for (const float value : resized(from, to, Floats(count, 0.75f)))
      BOOST_TEST(std::abs(value - 0.75f) < 1e-6f, from << " to " << to);
    const Floats x = drawn(from + to, count);
    BOOST_TEST(std::abs(mean(resized(from, to, x)) - mean(x)) < 1e-6, from << " to " << to);
    if (from == to) BOOST_TEST((resized(from, to, x) == x));
  }
}

BOOST_AUTO_TEST_CASE(maps_are_planes_with_the_channels_together) {
  constexpr std::uint32_t channels = 5;
  for (const auto [from, to] : sides) {
    const std::size_t before = std::size_t{from} * from, after = std::size_t{to} * to;
    const Floats planes = drawn(from * 31 + to, channels * before);
    Floats map(planes.size()), out(channels * after);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < before; ++p) map[p * channels + c] = planes[c * before + p];
    LargeVector<float> scratch;
    AreaMean(from, to).map(channels, map.data(), out.data(), scratch);
    const Floats expected = resized(from, to, planes, channels);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < after; ++p) BOOST_TEST(out[p * channels + c] == expected[c * after + p]);
  }
}

BOOST_AUTO_TEST_CASE(backward_is_the_transpose) {
  constexpr std::uint32_t channels = 3;
  for (const auto [from, to] : sides) {
    const Floats x = drawn(from, std::size_t{from} * from * channels);
    const Floats change_y = drawn(to + 50, std::size_t{to} * to * channels);
    Floats y(change_y.size()), change_x(x.size(), 99.0f);
    LargeVector<float> scratch;
    const AreaMean area(from, to);
    area.map(channels, x.data(), y.data(), scratch);
    area.map_backward(channels, change_y.data(), change_x.data(), scratch);
    BOOST_TEST(std::abs(dot(y, change_y) - dot(x, change_x)) < 1e-4, from << " to " << to);
  }
}

// The hash of the bits of one build on one machine; every compiler and instruction set must give it.
BOOST_AUTO_TEST_CASE(bits_are_the_same_everywhere) {
  const Floats x = drawn(9, 3 * 28 * 28);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    Floats all;
    for (const std::uint32_t to : {8u, 16u, 14u, 27u, 40u}) {
      const Floats y = resized(28, to, x, 3);
      all.insert(all.end(), y.begin(), y.end());
    }
    const Hash256 hash = sha256({reinterpret_cast<const std::uint8_t*>(all.data()), all.size() * sizeof(float)});
    BOOST_TEST(hash.hex().substr(0, 16) == "b7bc43bb56b73c11", table->name << " gives " << hash.hex());
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
