// Sorted ranges of sequence numbers: the arithmetic below HaveSet and the bookkeeping of links.
//
// Normal form: ascending, disjoint, not adjacent, first >= 1. Every function keeps it and expects it.
// Thread: pure functions on plain values. Costs: contains O(log n), insert O(1) at the end and O(n)
// elsewhere; n is the number of ranges, which is 1 for a stream without gaps.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace rumor::gossip {

// No stream gets this far (a thousand updates a second for 34 years); it keeps sums of counts within 64 bits.
inline constexpr std::uint64_t seq_max = std::uint64_t{1} << 40;

// Sequence numbers first..last, both included.
struct SeqRange {
  std::uint64_t first = 0, last = 0;
  auto operator<=>(const SeqRange&) const = default;
  std::uint64_t count() const { return last - first + 1; }
  bool valid() const { return first >= 1 && first <= last && last <= seq_max; }
};

using SeqRanges = std::vector<SeqRange>;

bool ranges_contain(const SeqRanges& ranges, std::uint64_t seq);

// Returns how many of the numbers were not there before.
// Requires: range.valid().
std::uint64_t ranges_insert(SeqRanges& ranges, SeqRange range);

// The numbers in `all` that are not in `taken`.
SeqRanges ranges_minus(const SeqRanges& all, const SeqRanges& taken);

std::uint64_t ranges_count(const SeqRanges& ranges);

}  // namespace rumor::gossip
