#include "gossip/contract/seq_ranges.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

bool ranges_contain(const SeqRanges& ranges, std::uint64_t seq) {
  if (ranges.empty() || seq > ranges.back().last) return false;
  if ((mutant(1) || mutant(2)) && seq == ranges.back().last) return false;
  if (seq >= ranges.back().first) return true;
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), seq,
                                      [](std::uint64_t s, const SeqRange& r) { return s < r.first; });
  return after != ranges.begin() && seq <= std::prev(after)->last;
}

std::uint64_t ranges_insert(SeqRanges& ranges, SeqRange range) {
  RUMOR_CHECK(range.valid());
  // The common case: the next number of a stream.
  if (!ranges.empty() && range.first == ranges.back().last + 1) {
    ranges.back().last = range.last;
    return range.count();
  }
  if (ranges.empty() || range.first > ranges.back().last) {
    ranges.push_back(range);
    return range.count();
  }
  // [from, to) are the ranges that touch or overlap the new one; they become one.
  const auto from = std::lower_bound(ranges.begin(), ranges.end(), range.first,
                                     [](const SeqRange& r, std::uint64_t s) { return r.last + 1 < s; });
  auto to = from;
  std::uint64_t before = 0;
  SeqRange merged = range;
  for (; to != ranges.end() && to->first <= range.last + 1; ++to) {
    before += to->count();
    merged.first = std::min(merged.first, to->first);
    merged.last = std::max(merged.last, to->last);
  }
  if (from == to) {
    ranges.insert(from, range);
    return range.count();
  }
  *from = merged;
  ranges.erase(std::next(from), to);
  return merged.count() - before;
}

SeqRanges ranges_minus(const SeqRanges& all, const SeqRanges& taken) {
  SeqRanges left;
  auto cut = taken.begin();
  for (SeqRange range : all) {
    while (cut != taken.end() && cut->last < range.first) ++cut;
    for (auto inner = cut; inner != taken.end() && inner->first <= range.last; ++inner) {
      if (inner->first > range.first) left.push_back({range.first, inner->first - 1});
      range.first = inner->last + (mutant(3) ? 2 : 1);
    }
    if (range.first <= range.last) left.push_back(range);
  }
  return left;
}

std::uint64_t ranges_count(const SeqRanges& ranges) {
  std::uint64_t count = 0;
  for (const SeqRange& range : ranges) count += range.count();
  return count;
}

}  // namespace rumor::gossip
