// Prng: the only source of randomness in the core. Seeded, integers only, equal on every machine and compiler.
//
// Generator: xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64. Not for keys or ids that must be
// unguessable: those come from the operating system, through the driver.
// Trap: never call it twice in one argument list; compilers evaluate arguments in different orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/mix64.h"

namespace rumor {

class Prng {
 public:
  explicit Prng(std::uint64_t seed) {
    for (auto& word : state_) word = seed = mix64(seed);
  }

  // An independent generator for a named purpose: drawing from it does not shift any other.
  static Prng named(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0) {
    std::uint64_t h = mix64(seed);
    for (char c : purpose) h = mix64(h ^ static_cast<unsigned char>(c));
    return Prng(mix64(h ^ index));
  }

  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), without modulo bias. Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    for (;;) {
      const std::uint64_t draw = next();
      if (draw >= threshold) return draw % bound;
    }
  }

  // Uniform in [low, high], both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t draw = span == UINT64_MAX ? next() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw);
  }

  // True with probability numerator / denominator.
  bool chance(std::uint64_t numerator, std::uint64_t denominator) { return below(denominator) < numerator; }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static constexpr std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

}  // namespace rumor
