#include "gossip/contract/have_set.h"

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

bool HaveSet::contains(const UpdateKey& key) const {
  const auto at = streams_.find(key.stream);
  return at != streams_.end() && ranges_contain(at->second, key.seq);
}

bool HaveSet::insert(const UpdateKey& key) {
  const std::uint64_t added = ranges_insert(streams_[key.stream], {key.seq, key.seq});
  count_ += added;
  return added != 0;
}

void HaveSet::insert(const StreamId& stream, SeqRange range) {
  count_ += ranges_insert(streams_[stream], range);
}

void HaveSet::merge(const HaveSet& other) {
  for (const auto& [stream, ranges] : other.streams_) {
    SeqRanges& mine = streams_[stream];
    for (const SeqRange& range : ranges) count_ += ranges_insert(mine, range);
  }
}

void HaveSet::erase(const StreamId& stream, SeqRange range) {
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return;
  const std::uint64_t before = ranges_count(at->second);
  at->second = ranges_minus(at->second, {range});
  count_ -= before - ranges_count(at->second);
  if (at->second.empty()) streams_.erase(at);
}

std::uint64_t HaveSet::head(const StreamId& stream) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? 0 : at->second.back().last;
}

HaveSet HaveSet::missing_from(const HaveSet& other) const {
  HaveSet missing;
  for (const auto& [stream, ranges] : other.streams_) {
    const auto mine = streams_.find(stream);
    if (mutant(20) && mine == streams_.end() && !streams_.empty()) continue;
    SeqRanges left = mine == streams_.end() ? ranges : ranges_minus(ranges, mine->second);
    if (left.empty()) continue;
    missing.count_ += ranges_count(left);
    missing.streams_.emplace_hint(missing.streams_.end(), stream, std::move(left));
  }
  return missing;
}

std::size_t HaveSet::range_count() const {
  std::size_t count = 0;
  for (const auto& [stream, ranges] : streams_) count += ranges.size();
  return count;
}

std::size_t HaveSet::memory_bytes() const {
  return streams_.size() * stream_overhead_bytes + range_count() * sizeof(SeqRange);
}

void HaveSet::encode(ByteWriter& out) const {
  out.varint(streams_.size());
  for (const auto& [stream, ranges] : streams_) {
    out.raw(stream.view());
    out.varint(ranges.size());
    std::uint64_t lowest = 1;  // the least number that the next range may begin with
    for (const SeqRange& range : ranges) {
      out.varint(range.first - lowest);
      out.varint(range.last - range.first);
      lowest = range.last + 2;
    }
  }
}

Result<HaveSet> HaveSet::decode(ByteReader& in) {
  const Error damaged{Errc::corrupt, "have-set is damaged: fetch it again"};
  HaveSet set;
  const std::uint64_t streams = in.varint();
  if (streams > limits::streams_max) return Error{Errc::limit, "have-set names too many streams"};
  for (std::uint64_t i = 0; i < streams; ++i) {
    const StreamId stream = in.id<StreamId>();
    const std::uint64_t count = in.varint();
    if (in.failed() || count == 0 || count > in.remaining() / 2) return damaged;
    if (!set.streams_.empty() && stream <= set.streams_.rbegin()->first) return damaged;
    SeqRanges ranges;
    ranges.reserve(static_cast<std::size_t>(count));
    std::uint64_t lowest = 1;
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t gap = in.varint();
      const std::uint64_t length = in.varint();
      if (in.failed() || gap > seq_max || length > seq_max) return damaged;
      const SeqRange range{lowest + gap, lowest + gap + length};
      if (!range.valid()) return damaged;
      ranges.push_back(range);
      lowest = range.last + 2;
    }
    set.count_ += ranges_count(ranges);
    set.streams_.emplace_hint(set.streams_.end(), stream, std::move(ranges));
  }
  if (in.failed()) return damaged;
  return set;
}

void HaveSet::check_invariants() const {
  std::uint64_t count = 0;
  for (const auto& [stream, ranges] : streams_) {
    RUMOR_CHECK(!ranges.empty());
    std::uint64_t lowest = 1;
    for (const SeqRange& range : ranges) {
      RUMOR_CHECK(range.valid());
      RUMOR_CHECK(range.first >= lowest);
      lowest = range.last + 2;
      count += range.count();
    }
  }
  RUMOR_CHECK(count == count_);
}

}  // namespace rumor::gossip
