// Scan kernels: the passes over all parameters, behind plain function pointers.
//
// The portable kernels define the result; every other set must give the same bits (tests/unit/compress
// compares them). Magnitudes are compared as integers: with the sign bit off, IEEE 754 floats order like
// their bits, and infinities and NaNs come above all finite numbers, so they are always candidates and cost
// no test of their own.
//
// Thread: the functions touch their arguments only. The set of a process is chosen once (scan_kernels()).
// This header is compiled with wider instructions than the rest of the program: no library templates in it,
// or the linker might keep a copy of theirs that the processor at hand cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rumor::compress {

struct ScanKernels {
  const char* name;

  // residual[i] += delta[i]; writes every i with magnitude bits >= cutoff into `found`, ascending, as long as
  // there is room. Returns how many there are, which may exceed `room`; then `found` holds some of them and
  // must not be used. cutoff: magnitude bits, at least 1. The two vectors must not overlap; any alignment,
  // any size.
  std::size_t (*add_and_collect)(float* residual, const float* delta, std::size_t size, std::uint32_t cutoff,
                                 std::uint32_t* found, std::size_t room);

  // The same without the addition.
  std::size_t (*collect)(const float* residual, std::size_t size, std::uint32_t cutoff, std::uint32_t* found,
                         std::size_t room);
};

// The reference, for every processor.
extern const ScanKernels scan_kernels_portable;

// Eight floats at a time; null when this program was built for another kind of processor or this one lacks
// AVX2.
const ScanKernels* scan_kernels_avx2();

// The fastest set this processor runs.
const ScanKernels& scan_kernels();

}  // namespace rumor::compress
