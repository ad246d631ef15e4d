// Floats to and from the formats of weight files: every half, ties, and the ends of each format's range.
#include "models/weights/float_formats.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

namespace rumor::models {
namespace {

float from(FloatFormat format, std::uint16_t half) {
  const std::uint8_t bytes[] = {static_cast<std::uint8_t>(half), static_cast<std::uint8_t>(half >> 8)};
  float value = 0;
  read_floats(format, bytes, 0, 1, {&value, 1});
  return value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(float_formats)

BOOST_AUTO_TEST_CASE(every_half_comes_back) {
  std::size_t numbers = 0;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const FloatFormat format : {FloatFormat::f16, FloatFormat::bf16}) {
      const float value = from(format, half);
      const std::uint16_t again = format == FloatFormat::f16 ? f16_of(value) : bf16_of(value);
      if (std::isnan(value)) {
        if (!std::isnan(from(format, again))) BOOST_ERROR("NaN " << half << " became a number");
        continue;
      }
      ++numbers;
      if (again != half) BOOST_ERROR(half << " came back as " << again);
    }
  }
  BOOST_TEST(numbers == 65'536u - 2 * 1023 + 65'536u - 2 * 127);
}

// The value in the middle of two neighbours goes to the even one, and the next floats on both sides to the nearer one.
BOOST_AUTO_TEST_CASE(ties_go_to_the_even_neighbour) {
  for (const FloatFormat format : {FloatFormat::f16, FloatFormat::bf16}) {
    const auto to = [format](float value) { return format == FloatFormat::f16 ? f16_of(value) : bf16_of(value); };
    const std::uint16_t last = format == FloatFormat::f16 ? 0x7bfe : 0x7f7e;
    for (std::uint16_t low = 0; low <= last; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      const auto middle =
          static_cast<float>((double{from(format, low)} + double{from(format, high)}) / 2);
      const std::uint16_t even = low % 2 == 0 ? low : high;
      if (to(middle) != even || to(-middle) != (even | 0x8000) || to(std::nextafter(middle, 0.0f)) != low ||
          to(std::nextafter(middle, INFINITY)) != high)
        BOOST_ERROR("between " << low << " and " << high << " in format " << static_cast<int>(format));
    }
  }
}

BOOST_AUTO_TEST_CASE(ends_of_the_range) {
  BOOST_TEST(f16_of(65'519.996f) == 0x7bff);
  BOOST_TEST(f16_of(65'520.0f) == 0x7c00);  // half a step above the largest: infinite
  BOOST_TEST(f16_of(-1e30f) == 0xfc00);
  BOOST_TEST(f16_of(0x1p-25f) == 0);
  BOOST_TEST(f16_of(std::nextafter(0x1p-25f, 1.0f)) == 1);
  BOOST_TEST(f16_of(-0.0f) == 0x8000);
  BOOST_TEST(bf16_of(std::numeric_limits<float>::max()) == 0x7f80);
  BOOST_TEST(bf16_of(INFINITY) == 0x7f80);
  BOOST_TEST(bf16_of(0.1f) == 0x3dcd);
}

BOOST_AUTO_TEST_CASE(values_are_read_with_a_stride_and_written_in_order) {
  const std::vector<float> values = {1, -2.5f, 0.125f, 3, 96, -7};
  for (const FloatFormat format : {FloatFormat::f32, FloatFormat::bf16, FloatFormat::f16, FloatFormat::f64}) {
    Bytes bytes(values.size() * bytes_of(format));
    write_floats(format, values, bytes);
    std::vector<float> odd(3);
    read_floats(format, bytes, 1, 2, odd);
    BOOST_TEST((odd == std::vector<float>{-2.5f, 3, -7}));
    BOOST_TEST((float_format(dtype_of(format)) == format));
  }
  BOOST_TEST(!float_format("I32").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
