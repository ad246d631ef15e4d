// Segments: the pieces of an update that are coded, checked and decoded on their own.
//
// A segment is cut by entries and not by parameters, so that every one is worth its overhead at any density.
// What lies in which segment follows from the counts alone (compress/FORMAT.md, chapter 4.4): the tensors are
// walked in order, a tensor with more than segment_entries_max entries is cut into parts of that many, and
// parts are put into one segment as long as their entries fit.
//
// Thread: plain values.
#pragma once

#include <cstdint>

namespace rumor::compress {

inline constexpr std::uint32_t segment_entries_max = 16384;

// Consecutive entries of one tensor. Positions count from the tensor's beginning, row-major, and lie in
// [begin, end).
struct Part {
  std::uint32_t tensor = 0;   // its place in the layout
  std::uint32_t columns = 1;  // of the tensor; position / columns is the row
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t count = 0;  // entries, at least 1, at most end - begin and segment_entries_max
};

}  // namespace rumor::compress
