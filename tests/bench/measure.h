// Shared by the benchmarks: timing, and updates of independent positions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>

#include "compress/payload/update.h"
#include "runtime/base/prng.h"

namespace rumor::bench {

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Best of several, in seconds.
inline double best_of(int rounds, const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) best = std::min(best, seconds_of(work));
  return best;
}

// Each parameter is an entry with this probability.
inline compress::SparseUpdate independent(const ParamLayout& layout, double density, std::uint64_t seed) {
  Prng prng(seed);
  compress::SparseUpdate update;
  update.step = 12'345;
  const double scale = 1 / std::log1p(-density);
  for (double position = 0;;) {
    position += std::floor(std::log((static_cast<double>(prng.next() >> 11) + 1) * 0x1p-53) * scale);
    if (position >= layout.params()) return update;
    update.index.push_back(static_cast<std::uint32_t>(position));
    update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
    position += 1;
  }
}

}  // namespace rumor::bench
