// Border numbers there and back: exact, rounded, scaled; damage is refused.
#include "compress/border/border_codec.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/prng.h"

namespace rumor::compress {
namespace {

constexpr BorderNumbers all_numbers[] = {BorderNumbers::f32, BorderNumbers::bf16, BorderNumbers::int8};

std::vector<float> drawn(std::size_t count) {
  Prng prng(5);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(prng.between(-1'000'000, 1'000'000)), -18);
  return values;
}

Bytes encoded(BorderNumbers numbers, std::size_t floats, const std::vector<float>& values) {
  Bytes bytes;
  encode_border(numbers, floats, values, bytes);
  return bytes;
}

std::vector<float> back(BorderNumbers numbers, std::size_t floats, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  BOOST_REQUIRE(decode_border(numbers, floats, encoded(numbers, floats, values), out).ok());
  return out;
}

bool is_refused(BorderNumbers numbers, std::size_t floats, const Bytes& bytes, std::size_t count) {
  std::vector<float> out(count);
  return !decode_border(numbers, floats, bytes, out).ok();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(border_codec)

BOOST_AUTO_TEST_CASE(bytes_are_as_many_as_said) {
  for (const BorderNumbers numbers : all_numbers)
    for (const std::size_t floats : {1u, 255u, 256u, 257u, 600u})
      BOOST_TEST(encoded(numbers, floats, drawn(3 * floats)).size() == border_bytes(numbers, 3, floats));
  BOOST_TEST(border_bytes(BorderNumbers::int8, 2, 600) == 2u * (600 + 3 * 4));
}

BOOST_AUTO_TEST_CASE(f32_is_exact) {
  const std::vector<float> values = drawn(3 * 600);
  BOOST_TEST((back(BorderNumbers::f32, 600, values) == values));
}

BOOST_AUTO_TEST_CASE(bf16_is_rounded_to_even) {
  const std::vector<float> exact = {1.0f, -2.5f, 0.0f, 3.0e38f, 1.0f + 1.0f / 128};
  const std::vector<float> got = back(BorderNumbers::bf16, 5, exact);
  BOOST_TEST(got[0] == 1.0f);
  BOOST_TEST(got[1] == -2.5f);
  BOOST_TEST(got[4] == 1.0f + 1.0f / 128);
  const std::vector<float> halves = {1.0f + 1.0f / 256, 1.0f + 3.0f / 256};
  BOOST_TEST((back(BorderNumbers::bf16, 2, halves) == std::vector<float>{1.0f, 1.0f + 2.0f / 128}));
}

BOOST_AUTO_TEST_CASE(int8_errs_by_half_a_scale_at_most) {
  constexpr std::size_t floats = 600;
  std::vector<float> values = drawn(2 * floats);
  values[300] = 50;  // the second block of the first row has another scale
  const std::vector<float> got = back(BorderNumbers::int8, floats, values);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t at = 0; at < floats; at += border_block) {
      float top = 0;
      const std::size_t end = std::min(at + border_block, floats);
      for (std::size_t i = at; i < end; ++i) top = std::max(top, std::abs(values[row * floats + i]));
      for (std::size_t i = row * floats + at; i < row * floats + end; ++i)
        BOOST_TEST_REQUIRE(std::abs(got[i] - values[i]) <= top / 127 * 0.5001f);
    }
  }
  const std::vector<float> zeros(floats);
  BOOST_TEST((back(BorderNumbers::int8, floats, zeros) == zeros));
}

// The same bytes on every machine: the rounding is ours.
BOOST_AUTO_TEST_CASE(int8_has_these_bytes) {
  BOOST_TEST((encoded(BorderNumbers::int8, 4, {127, -63.5f, 0.25f, 0.75f}) ==
              Bytes{0, 0, 0x80, 0x3f, 127, 0xc0, 0, 1}));
}

BOOST_AUTO_TEST_CASE(damage_is_refused) {
  const std::vector<float> values = drawn(2 * 300);
  for (const BorderNumbers numbers : all_numbers) {
    Bytes bytes = encoded(numbers, 300, values);
    bytes.pop_back();
    BOOST_TEST(is_refused(numbers, 300, bytes, values.size()));
    bytes.resize(bytes.size() + 2);
    BOOST_TEST(is_refused(numbers, 300, bytes, values.size()));
    for (const float wrong :
         {std::numeric_limits<float>::infinity(), std::nanf(""), -std::numeric_limits<float>::infinity()})
      for (const std::size_t at : {0u, 255u, 299u, 300u}) {
        std::vector<float> spoilt = values;
        spoilt[at] = wrong;
        BOOST_TEST(is_refused(numbers, 300, encoded(numbers, 300, spoilt), values.size()));
      }
  }
  Bytes bytes = encoded(BorderNumbers::int8, 300, values);
  bytes[4] = 0x80;  // -128
  BOOST_TEST(is_refused(BorderNumbers::int8, 300, bytes, values.size()));
  bytes = encoded(BorderNumbers::int8, 300, values);
  bytes[3] |= 0x80;  // a negative scale
  BOOST_TEST(is_refused(BorderNumbers::int8, 300, bytes, values.size()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::compress
