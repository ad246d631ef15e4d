// Segments: the pieces of an update that are coded, checked and decoded on their own.
//
// A segment is cut by entries and not by parameters, so that every one is worth its overhead at any density.
// The counts alone determine the segments (compress/FORMAT.md, chapter 4.5). Tensors are walked in order. A tensor
// with more than segment_entries_max entries is cut into parts of that many, and parts share a segment as long as
// their entries fit. So a part that continues a tensor is always the first of its segment.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/param_layout.h"

namespace rumor::compress {

inline constexpr std::uint32_t segment_entries_max = 16384;

// Consecutive entries of one tensor. Positions count from the tensor's beginning, row-major, and are in [begin, end).
struct Part {
  std::uint32_t tensor = 0;   // its place in the layout
  std::uint32_t columns = 1;  // of the tensor; position / columns is the row
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t count = 0;  // entries, at least 1, at most end - begin and segment_entries_max
};

// How the body of a segment is written. The numbers travel: never renumber.
enum class SegmentMode : std::uint8_t { raw = 1, rice = 2, bitmap = 3, adapt = 4, link = 5 };

struct Segment {
  std::uint32_t first_part = 0;
  std::uint32_t parts = 0;
  std::uint64_t first_entry = 0;  // of the update
  std::uint32_t entries = 0;
  bool continues = false;  // its first part continues the last tensor of the previous segment
};

struct Segments {
  std::vector<Part> parts;
  std::vector<Segment> list;

  std::span<const Part> parts_of(const Segment& segment) const {
    return std::span<const Part>(parts).subspan(segment.first_part, segment.parts);
  }
  // A part that continues its tensor begins at `begin`, and the previous part ends there.
  // Requires: segment.continues.
  void set_begin(const Segment& segment, std::uint32_t begin) {
    parts[segment.first_part].begin = begin;
    parts[segment.first_part - 1].end = begin;
  }
};

// All parts begin and end with their tensor until set_begin() says otherwise.
// Requires: one count for each tensor, none above its size.
Segments cut_segments(const ParamLayout& layout, std::span<const std::uint32_t> counts);

// The same with begins and ends set from the entries: ascending positions in the flat vector.
// Requires: as many positions in each tensor as its count; checked.
Segments segments_of(const ParamLayout& layout, std::span<const std::uint32_t> counts,
                     std::span<const std::uint32_t> index);

}  // namespace rumor::compress
