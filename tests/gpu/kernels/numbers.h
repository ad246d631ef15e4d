// Random matrices for the tests of models' kernels, and how their results are compared.
#pragma once

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "gpu/device/model_table.h"
#include "runtime/base/prng.h"

namespace rumor::gpu {

using Floats = std::vector<float>;

inline Floats drawn(Prng& prng, std::size_t count, double size = 1) {
  Floats values(count);
  for (float& value : values)
    value = static_cast<float>(static_cast<double>(prng.between(-1'000'000, 1'000'000)) * 1e-6 * size);
  return values;
}

// The same with some zeros of both signs, denormals, very large numbers, infinities and NaNs.
inline Floats drawn_wild(Prng& prng, std::size_t count) {
  constexpr float wild[] = {0.0f,
                            -0.0f,
                            1e-40f,
                            3e38f,
                            90.0f,
                            -90.0f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  Floats values = drawn(prng, count, 6);
  for (float& value : values)
    if (prng.chance(1, 12)) value = wild[prng.below(std::size(wild))];
  return values;
}

// The nearest bfloat16, ties to even, found by comparing the two around it.
inline float nearest_bf16(float value) {
  if (std::isnan(value)) return value;
  const float down = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff'0000);  // towards zero
  const float up = std::bit_cast<float>(std::bit_cast<std::uint32_t>(down) + 0x1'0000);
  const double to_down = std::abs(double{value} - double{down}), to_up = std::abs(double{up} - double{value});
  const bool down_is_even = (std::bit_cast<std::uint32_t>(down) >> 16 & 1) == 0;
  return to_up < to_down || (to_up == to_down && !down_is_even) ? up : down;
}

// As numbers of a device, rounded where they are bfloat16; and back.
template <class Number>
std::vector<Number> numbers_of(const Floats& values) {
  std::vector<Number> numbers;
  for (const float value : values) {
    if constexpr (std::is_same_v<Number, Bf16>)
      numbers.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(nearest_bf16(value)) >> 16)});
    else
      numbers.push_back(value);
  }
  return numbers;
}
inline Floats floats_of(const std::vector<Bf16>& numbers) {
  Floats values;
  for (const Bf16 one : numbers) values.push_back(std::bit_cast<float>(std::uint32_t{one.bits} << 16));
  return values;
}
inline Floats floats_of(const Floats& numbers) {
  return numbers;
}
template <class Number>
Floats rounded_as(const Floats& values) {
  return floats_of(numbers_of<Number>(values));
}

// A matrix with gaps behind its rows, filled with `gap`, as `layout` says; and without them again.
inline Floats with_gaps(const Floats& values, const MatrixLayout& layout, float gap = std::nanf("")) {
  Floats spread(std::size_t{layout.rows} * layout.stride, gap);
  for (std::size_t i = 0; i < values.size(); ++i)
    spread[i / layout.columns * layout.stride + i % layout.columns] = values[i];
  return spread;
}
inline Floats without_gaps(const Floats& spread, const MatrixLayout& layout) {
  Floats values(std::size_t{layout.rows} * layout.columns);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = spread[i / layout.columns * layout.stride + i % layout.columns];
  return values;
}

// Equal bits; which NaN one is, is open.
inline bool same_bits(const Floats& got, const Floats& expected) {
  return std::equal(got.begin(), got.end(), expected.begin(), expected.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

// The largest difference, as a share of the largest expected value; infinite where sizes differ or one is no number.
template <class Expected>
double distance(const Floats& got, const Expected& expected) {
  double most = 0, size = 0;
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto wanted = static_cast<double>(expected[i]);
    const double off = std::abs(static_cast<double>(got[i]) - wanted);
    if (!(off < std::numeric_limits<double>::infinity())) return std::numeric_limits<double>::infinity();
    most = std::max(most, off);
    size = std::max(size, std::abs(wanted));
  }
  return most == 0 ? 0 : most / size;
}

}  // namespace rumor::gpu
