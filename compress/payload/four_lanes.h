// Four 32-bit numbers in one register, with the vector extension that gcc and clang share, so that it is the same on
// every machine.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <cstring>

namespace rumor::compress {

// Four numbers at a time, as gcc and clang have them on every machine.
typedef std::int32_t Four __attribute__((vector_size(16)));

inline Four four_at(const std::uint32_t* numbers) {
  Four four;
  std::memcpy(&four, numbers, sizeof four);
  return four;
}
inline Four four_alike(std::uint32_t number) {
  const auto same = static_cast<std::int32_t>(number);
  return Four{same, same, same, same};
}
// How many of four lanes hold -1, the others 0; or the sum of what several such comparisons hold.
inline std::uint32_t lanes_in(Four minus) {
  typedef std::uint64_t Two __attribute__((vector_size(16)));
  const Two halves = reinterpret_cast<Two>(-minus);  // each number is small: none carries into the next
  const std::uint64_t sum = halves[0] + halves[1];
  return static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(sum >> 32);
}

}  // namespace rumor::compress
