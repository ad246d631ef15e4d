// RICE kernels: fields, thirds and quotients of one part (compress/FORMAT.md 4.6), behind plain function
// pointers.
//
// The portable kernels define the result; every other set must give the same bits and accept the same bytes
// (tests/unit/compress compares them).
//
// Thread: the functions touch their arguments only. The set of a process is chosen once (rice_kernels()).
// This header is compiled with wider instructions than the rest of the program: no library templates and no
// inline functions in it, or the linker might keep a copy that the processor at hand cannot run.
#pragma once

#include <cstdint>

namespace rumor::compress {

// The entries of one part, in positions of the flat vector.
struct RicePart {
  std::uint32_t first;  // gaps count from here
  std::uint32_t span;   // positions are in [first, first + span); first + span < 2^31
  std::uint32_t count;  // 1 to 16,384
  std::uint32_t low_bits;
  bool thirds;
};

struct RiceKernels {
  const char* name;

  // Writes a part from bit `at` of `out` on and returns the bit after it. The bits of the byte that holds
  // `at` are zero from there on; up to 64 bytes behind the part may be overwritten.
  // Requires: count positions ascending inside the part, signs 0 or 1, room for rice_bits_max() bits and 64
  // bytes.
  std::uint64_t (*encode)(const RicePart& part, const std::uint32_t* index, const std::uint8_t* negative,
                          std::uint8_t* out, std::uint64_t at);

  // Reads a part from bit `at` of `bytes` on into index and negative and returns the bit after it. Returns 0 if the
  // bits before `end` hold no such part; the content of index and negative is then unspecified.
  // Requires: 64 readable bytes behind bit `end`, room for count positions and signs.
  std::uint64_t (*decode)(const RicePart& part, const std::uint8_t* bytes, std::uint64_t at,
                          std::uint64_t end, std::uint32_t* index, std::uint8_t* negative);
};

// The reference, for every processor.
extern const RiceKernels rice_kernels_portable;

// Sixteen entries at a time; null when this program was built for another kind of processor or this one lacks
// AVX-512 F, BW, VL, DQ or BMI2.
const RiceKernels* rice_kernels_avx512();

// The fastest set this processor runs.
const RiceKernels& rice_kernels();

}  // namespace rumor::compress
