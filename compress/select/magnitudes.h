// Finds the largest of a rank by counting magnitudes, when no last threshold predicts the candidates.
//
// Thread: the same numbers for any number of threads. Memory: 128 or 256 KiB a thread.
#pragma once

#include <cstdint>
#include <span>

#include "compress/select/scan_pass.h"
#include "runtime/base/parallel.h"

namespace rumor::compress {

// Groups of fewer parameters are looked at whole instead: the histogram has as many bins.
inline constexpr std::uint32_t histogram_params_min = 16384;

// Magnitude bits that at least `wanted` values of the pieces reach (all, where there are fewer), and mostly
// few more: from a count by exponent and seven bits of mantissa.
std::uint32_t cutoff_by_histogram(const float* residual, std::span<const Piece> pieces, std::uint32_t wanted,
                                  Parallel& parallel);

// Leaves in the pieces the `wanted` largest as candidates and nothing else; among equal ones the lowest positions win.
// Returns the magnitude bits of the smallest. It is for residuals with so many equal or nearly equal values that
// candidates would take more memory than the residual, as in the first steps of Adam. Passes over the residual four
// times. Requires: the pieces hold as many parameters; nothing of them is pending.
std::uint32_t collect_largest(const float* residual, std::span<Piece> pieces, std::uint32_t wanted,
                              Parallel& parallel);

}  // namespace rumor::compress
