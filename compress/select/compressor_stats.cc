#include "compress/select/compressor_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/check.h"

namespace rumor::compress {

CompressorStats compressor_stats(const ParamLayout& layout, Scope scope, std::span<const RankGroup> groups,
                                 std::span<const std::uint32_t> sent_by_tensor, std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == layout.params() && sent_by_tensor.size() == layout.tensors().size());
  CompressorStats stats;
  std::uint64_t sent = 0;
  double steps = 0;
  for (const RankGroup& group : groups) {
    if (group.selected == 0) continue;
    const double threshold = std::bit_cast<float>(group.threshold);
    stats.threshold = sent == 0 ? threshold : std::min(stats.threshold, threshold);
    steps += static_cast<double>(group.step) * static_cast<double>(group.selected);
    sent += group.selected;
  }
  stats.step = sent == 0 ? 0 : steps / static_cast<double>(sent);
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    double squares = 0, sum = 0;
    for (const float value : residual.subspan(tensor.offset, tensor.size)) {
      squares += double{value} * value;
      sum += std::abs(double{value});
    }
    TensorStats figures{
        .entries = sent_by_tensor[t], .residual_rms = std::sqrt(squares / tensor.size), .residual_sum = sum};
    if (figures.entries > 0) {
      const RankGroup& group = groups[scope == Scope::global ? 0 : t];
      figures.threshold = std::bit_cast<float>(group.threshold);
      figures.step = group.step;
    }
    stats.tensors.push_back(figures);
  }
  return stats;
}

}  // namespace rumor::compress
