// mix64: one step of splitmix64 (Steele, Lea, Flood 2014). Included where code is compiled with wider instructions than
// the rest of the program, so always inlined, and alone.
#pragma once

#include <cstdint>

namespace rumor {

// A good 64-bit mixer, also used for fingerprint coefficients.
__attribute__((always_inline)) constexpr inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace rumor
