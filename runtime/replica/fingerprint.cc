#include "runtime/replica/fingerprint.h"

#include "runtime/base/bytes.h"

namespace rumor {

Fingerprinter::Fingerprinter(const RunId& run) : seed_(ByteReader(run.view()).u64()) {}

std::uint64_t Fingerprinter::of_weights(std::span<const std::int32_t> weights, std::uint32_t first) const {
  const LaneSums sums = kernels_->weights(seed_, first, weights.data(), weights.size());
  return lanes(sums.low, sums.high);
}

std::uint64_t Fingerprinter::of_update(const ParamLayout& layout,
                                       const compress::SparseUpdate& update) const {
  std::uint64_t sum = 0;
  for (const compress::StepRun& run : compress::step_runs(layout, update)) {
    const LaneSums sums =
        kernels_->entries(seed_, update.index.data() + run.first, update.negative.data() + run.first, run.count);
    const auto step = static_cast<std::uint32_t>(run.step);
    sum = add(sum, lanes(sums.low * step, sums.high * step));
  }
  return sum;
}

}  // namespace rumor
