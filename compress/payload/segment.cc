#include "compress/payload/segment.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::compress {

Segments cut_segments(const ParamLayout& layout, std::span<const std::uint32_t> counts) {
  RUMOR_CHECK(counts.size() == layout.tensors().size());
  Segments segments;
  std::uint64_t entries = 0;
  for (std::uint32_t t = 0; t < counts.size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    RUMOR_CHECK(counts[t] <= tensor.size);
    for (std::uint32_t done = 0; done < counts[t];) {
      const std::uint32_t count = std::min(counts[t] - done, segment_entries_max);
      if (segments.list.empty() || segments.list.back().entries + count > segment_entries_max)
        segments.list.push_back({.first_part = static_cast<std::uint32_t>(segments.parts.size()),
                                 .first_entry = entries,
                                 .continues = done > 0});
      segments.parts.push_back({t, tensor.cols(), 0, tensor.size, count});
      ++segments.list.back().parts;
      segments.list.back().entries += count;
      entries += count;
      done += count;
    }
  }
  return segments;
}

Segments segments_of(const ParamLayout& layout, std::span<const std::uint32_t> counts,
                     std::span<const std::uint32_t> index) {
  Segments segments = cut_segments(layout, counts);
  for (const Segment& segment : segments.list) {
    if (!segment.continues) continue;
    RUMOR_CHECK(segment.first_entry + segment.entries <= index.size());
    const Part& part = segments.parts[segment.first_part];
    const std::uint32_t last = index[segment.first_entry - 1] - layout.tensors()[part.tensor].offset;
    RUMOR_CHECK(last < part.end);
    segments.set_begin(segment, last + 1);
  }
  return segments;
}

}  // namespace rumor::compress
