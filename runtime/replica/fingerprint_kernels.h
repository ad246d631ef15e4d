// Fingerprint kernels: the sums of runtime/replica/fingerprint.h behind plain function pointers. All sets give the
// same bits: sums of integers mod 2^32, in any order.
//
// Thread: the functions touch their arguments only. The set of a process is chosen once (fingerprint_kernels()).
// This header is compiled with wider instructions than the rest of the program: no library templates in it,
// or the linker might keep a copy of theirs that the processor at hand cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor {

// The sums of both lanes, mod 2^32.
struct LaneSums {
  std::uint32_t low, high;
};

struct FingerprintKernels {
  const char* name;
  // Sum over i of weights[i] * r(first + i).
  LaneSums (*weights)(std::uint64_t seed, std::uint32_t first, const std::int32_t* weights, std::size_t count);
  // Sum over e of r(index[e]), minus where negative[e] is 1.
  LaneSums (*entries)(std::uint64_t seed, const std::uint32_t* index, const std::uint8_t* negative,
                      std::size_t count);
};

extern const FingerprintKernels fingerprint_kernels_portable;
// Null where the processor cannot run them.
const FingerprintKernels* fingerprint_kernels_avx2();
const FingerprintKernels* fingerprint_kernels_avx512();
// The fastest set that it can.
const FingerprintKernels& fingerprint_kernels();

}  // namespace rumor
