#include "models/weights/float_formats.h"

#include <bit>
#include <cstring>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie in the file");

template <class T>
T value_at(const std::uint8_t* bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes + at * sizeof value, sizeof value);
  return value;
}

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;  // zero and denormals
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;  // 127 - 15
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// The upper bits of `value` without its lowest `dropped`, to nearest, ties to even.
std::uint32_t round_off(std::uint32_t value, unsigned dropped) {
  const std::uint32_t half = (std::uint32_t{1} << (dropped - 1)) - 1;
  return (value + half + (value >> dropped & 1)) >> dropped;
}

}  // namespace

std::optional<FloatFormat> float_format(std::string_view dtype) {
  for (const FloatFormat format : {FloatFormat::f32, FloatFormat::bf16, FloatFormat::f16, FloatFormat::f64})
    if (dtype == dtype_of(format)) return format;
  return std::nullopt;
}

std::string_view dtype_of(FloatFormat format) {
  constexpr std::string_view names[] = {"F32", "BF16", "F16", "F64"};
  return names[static_cast<std::size_t>(format)];
}

std::size_t bytes_of(FloatFormat format) {
  constexpr std::size_t sizes[] = {4, 2, 2, 8};
  return sizes[static_cast<std::size_t>(format)];
}

void read_floats(FloatFormat format, BytesView bytes, std::size_t first, std::size_t stride, std::span<float> out) {
  const std::uint8_t* from = bytes.data();
  std::size_t at = first;
  const auto each = [&](auto make) {
    for (float& value : out) {
      value = make(at);
      at += stride;
    }
  };
  switch (format) {
    case FloatFormat::f32:
      return each([&](std::size_t i) { return value_at<float>(from, i); });
    case FloatFormat::bf16:
      return each([&](std::size_t i) {
        return std::bit_cast<float>(std::uint32_t{value_at<std::uint16_t>(from, i)} << 16);
      });
    case FloatFormat::f16:
      return each([&](std::size_t i) { return float_of_half(value_at<std::uint16_t>(from, i)); });
    case FloatFormat::f64:
      return each([&](std::size_t i) { return static_cast<float>(value_at<double>(from, i)); });
  }
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffff) > 0x7f80'0000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // NaN stays NaN
  return static_cast<std::uint16_t>(round_off(bits, 16));
}

std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t size = bits & 0x7fff'ffff;
  const auto signed_half = [sign](std::uint32_t half) { return static_cast<std::uint16_t>(sign | half); };
  if (size > 0x7f80'0000) return signed_half(0x7e00);
  if (size >= 0x4780'0000) return signed_half(0x7c00);  // 65,536 and above
  if (size < 0x3300'0000) return sign;                  // under half of the least denormal, 2^-24
  if (size >= 0x3880'0000) return signed_half(round_off(size - 0x3800'0000, 13));  // 2^-14 and above: normal
  const std::uint32_t fraction = (size & 0x7f'ffff) | 0x80'0000;
  return signed_half(round_off(fraction, 126 - (size >> 23)));  // in units of 2^-24
}

void write_floats(FloatFormat format, std::span<const float> values, std::span<std::uint8_t> out) {
  RUMOR_CHECK(out.size() == values.size() * bytes_of(format));
  std::uint8_t* to = out.data();
  const auto put = [to](std::size_t at, auto value) { std::memcpy(to + at * sizeof value, &value, sizeof value); };
  for (std::size_t i = 0; i < values.size(); ++i) switch (format) {
      case FloatFormat::f32:
        put(i, values[i]);
        break;
      case FloatFormat::bf16:
        put(i, bf16_of(values[i]));
        break;
      case FloatFormat::f16:
        put(i, f16_of(values[i]));
        break;
      case FloatFormat::f64:
        put(i, double{values[i]});
        break;
    }
}

}  // namespace rumor::models
