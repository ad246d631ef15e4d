// The matrix units of the emulation: what gpu/cuda/matrix_units.cuh gives on a GPU, with the same parts in the same
// lanes, as sums in C++. Included before any kernel.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/gpu/emulation/emulation.h"
//
#include "gpu/cuda/rounding.cuh"

namespace rumor::gpu {

namespace emulation {

// The words of all lanes, two at a time.
struct LaneWords {
  std::uint32_t word[2][32];
};
inline LaneWords words_of_lanes(std::uint32_t first, std::uint32_t second) {
  const std::uint64_t* lanes = exchange(Meeting::matrix, std::uint64_t{second} << 32 | first);
  LaneWords all;
  for (unsigned lane = 0; lane < 32; ++lane) {
    all.word[0][lane] = static_cast<std::uint32_t>(lanes[lane]);
    all.word[1][lane] = static_cast<std::uint32_t>(lanes[lane] >> 32);
  }
  return all;
}

// One of the two numbers in a word.
inline float half_of(std::uint32_t word, unsigned which) {
  return number_of(Bf16{static_cast<std::uint16_t>(word >> which * 16)});
}

// Row `row` of matrix `matrix` of those that are loaded. Other lanes may write there only behind a barrier.
inline const Bf16* loaded_row(const std::uint64_t* lanes, unsigned matrix, unsigned row) {
  return reinterpret_cast<const Bf16*>(static_cast<std::uintptr_t>(lanes[matrix * 8 + row]));
}

}  // namespace emulation

inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b_above, std::uint32_t b_below) {
  using emulation::half_of;
  const unsigned lane = threadIdx.x % 32;
  const emulation::LaneWords left = emulation::words_of_lanes(a[0], a[1]);
  const emulation::LaneWords right = emulation::words_of_lanes(a[2], a[3]);
  const emulation::LaneWords b = emulation::words_of_lanes(b_above, b_below);
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
    float products = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned owner = k % 8 / 2;
      const std::uint32_t in_row = (k < 8 ? left : right).word[i / 2][row * 4 + owner];
      products += half_of(in_row, k % 2) * half_of(b.word[k / 8][column * 4 + owner], k % 2);
    }
    sum[i] += products;
  }
}

inline void load_matrices(std::uint32_t (&out)[4], const Bf16* row) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t* lanes = emulation::exchange(emulation::Meeting::matrix, reinterpret_cast<std::uintptr_t>(row));
  for (unsigned m = 0; m < 4; ++m) {
    const Bf16* const two = emulation::loaded_row(lanes, m, lane / 4) + lane % 4 * 2;
    out[m] = two[0].bits | std::uint32_t{two[1].bits} << 16;
  }
}

inline void load_matrices_turned(std::uint32_t (&out)[4], const Bf16* row) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t* lanes = emulation::exchange(emulation::Meeting::matrix, reinterpret_cast<std::uintptr_t>(row));
  for (unsigned m = 0; m < 4; ++m) {
    const auto bits_of = [&](unsigned at) { return emulation::loaded_row(lanes, m, lane % 4 * 2 + at)[lane / 4].bits; };
    out[m] = bits_of(0) | std::uint32_t{bits_of(1)} << 16;
  }
}

template <int bytes>
void begin_copy(void* to, const void* from, bool there) {
  if (there)
    std::memcpy(to, from, bytes);
  else
    std::memset(to, 0, bytes);
}
inline void end_copies() {}
template <int but>
void wait_for_copies() {}

}  // namespace rumor::gpu
