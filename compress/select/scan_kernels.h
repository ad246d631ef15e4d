// Scan kernels: the pass over all parameters, and those over its candidates, behind plain function pointers.
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

#include "runtime/base/step_rule.h"

namespace rumor::compress {

// Where the change of a parameter comes from.
enum class ChangeForm : std::uint8_t {
  none,      // nothing is added: candidates only
  floats,    // change[i]
  bf16,      // bf16[i], the upper half of a float
  sgd,       // rule.kind of that name with gradient change[i]; the moments in `rule` are updated
  momentum,
  rmsprop,
  adam,
  adamw,
  nadamw,
  adaptive_revision,
};
inline constexpr std::size_t change_forms = 10;

struct ScanInput {
  float* residual = nullptr;  // not written with ChangeForm::none
  const float* change = nullptr;
  const std::uint16_t* bf16 = nullptr;
  StepRule rule;
};

// Room a kernel may scribble on behind the candidates it reports.
inline constexpr std::size_t scan_slack = 64;

struct ScanKernels {
  const char* name;

  // For i in [begin, end): residual[i] += the change; where the sum has magnitude bits >= cutoff, its position
  // and value go to index[] and value[], ascending. Returns how many. cutoff: at least 1. Both arrays have
  // room for end - begin + scan_slack. The vectors of `input` must not overlap; any alignment, any size. Reads
  // ahead of `end` into the caches only.
  std::size_t (*scan[change_forms])(const ScanInput& input, std::size_t begin, std::size_t end,
                                    std::uint32_t cutoff, std::uint32_t* index, float* value);

  // Magnitude bits in [low, high) of `count` values, in any order. bits[] has room for count + scan_slack.
  // high: at most 2^31.
  std::size_t (*between)(const float* value, std::size_t count, std::uint32_t low, std::uint32_t high,
                         std::uint32_t* bits);

  // Keeps the candidates, of `count`, with magnitude bits >= threshold, in their order: position, and 1 if the
  // value is negative. `kept` is their number; nothing is written behind them.
  void (*keep)(const std::uint32_t* index, const float* value, std::size_t count, std::uint32_t threshold,
               std::size_t kept, std::uint32_t* out_index, std::uint8_t* out_negative);
};

// The reference, for every processor.
extern const ScanKernels scan_kernels_portable;

// Null when this program was built for another kind of processor or this one lacks them (runtime/base/kernel_choice.h).
const ScanKernels* scan_kernels_avx2();
const ScanKernels* scan_kernels_avx512();

// The fastest set this processor runs.
const ScanKernels& scan_kernels();

}  // namespace rumor::compress
