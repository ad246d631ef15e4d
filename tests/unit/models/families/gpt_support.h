// Shared by the tests of a transformer's layers: random values, and slopes by finite differences.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/kernels/kernels.h"
#include "runtime/base/check.h"
#include "runtime/base/prng.h"

namespace rumor::models::test {

inline std::vector<float> draw(Prng& prng, long count, double size = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = static_cast<float>(static_cast<double>(prng.between(-100'000, 100'000)) / 100'000 * size);
  return values;
}

// As golden_gpt.py makes its inputs.
inline std::vector<float> values(long count, long step, long modulus, long divisor) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (long i = 0; i < count; ++i)
    out[static_cast<std::size_t>(i)] =
        static_cast<float>(i * step % modulus - modulus / 2) / static_cast<float>(divisor);
  return out;
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// The largest difference, beside which 1 counts as small.
template <class Expected>
double worst(const std::vector<float>& have, const Expected& expected) {
  RUMOR_CHECK(have.size() == std::size(expected));
  double largest = 0;
  for (std::size_t i = 0; i < have.size(); ++i) {
    const auto want = static_cast<double>(expected[i]);
    largest = std::max(largest, std::abs(static_cast<double>(have[i]) - want) / (1 + std::abs(want)));
  }
  return largest;
}

// How much `gradient` differs from the slopes of `loss` in x, by central differences at some forty places.
inline double worst_slope(std::vector<float>& x, const std::vector<float>& gradient,
                          const std::function<double()>& loss) {
  double largest = 0;
  const std::size_t stride = x.size() / 40 + 1;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    constexpr float step = 1.0f / 128;
    const float here = x[i];
    x[i] = here + step;
    const double above = loss();
    x[i] = here - step;
    const double below = loss();
    x[i] = here;
    const double slope = (above - below) / (2 * static_cast<double>(step));
    largest = std::max(largest, std::abs(static_cast<double>(gradient[i]) - slope) / (1 + std::abs(slope)));
  }
  return largest;
}

}  // namespace rumor::models::test
