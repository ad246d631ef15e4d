#include "runtime/fingerprint.h"

#include "runtime/base/bytes.h"

namespace rumor {

Fingerprinter::Fingerprinter(const RunId& run) : seed_(ByteReader(run.view()).u64()) {}

std::uint64_t Fingerprinter::of_weights(std::span<const std::int32_t> weights) const {
  std::uint32_t low = 0, high = 0;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t r = coefficients(i);
    const auto w = static_cast<std::uint32_t>(weights[i]);
    low += w * static_cast<std::uint32_t>(r);
    high += w * static_cast<std::uint32_t>(r >> 32);
  }
  return lanes(low, high);
}

std::uint64_t Fingerprinter::of_update(const ParamLayout& layout,
                                       const compress::SparseUpdate& update) const {
  std::uint64_t sum = 0;
  for (const compress::StepRun& run : compress::step_runs(layout, update)) {
    std::uint32_t low = 0, high = 0;
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const std::uint64_t r = coefficients(update.index[e]);
      const std::uint32_t sign = update.negative[e] ? ~0u : 1u;  // -1 or 1 mod 2^32
      low += sign * static_cast<std::uint32_t>(r);
      high += sign * static_cast<std::uint32_t>(r >> 32);
    }
    const auto step = static_cast<std::uint32_t>(run.step);
    sum = add(sum, lanes(low * step, high * step));
  }
  return sum;
}

}  // namespace rumor
