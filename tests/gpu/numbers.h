// Random matrices for the tests of models' kernels, and how their results are compared.
#pragma once

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

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
