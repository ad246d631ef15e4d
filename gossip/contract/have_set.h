// HaveSet: the names of the updates a replica has applied, as sorted ranges per stream.
//
// The normal form of a stream is one range [1..n]; gaps are allowed and may be permanent (an update held only
// by peers that died). Iteration is in StreamId order, so everything derived from it is equal on equal sets.
//
// Thread: one owner. Memory: O(streams + gaps).
// Invariants (check_invariants): ranges ascending, disjoint, not adjacent, first >= 1; no empty stream.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gossip/contract/seq_ranges.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

class HaveSet {
 public:
  bool contains(const UpdateKey& key) const;
  // Returns false when it was there already. Requires: 1 <= seq <= seq_max (check what peers send).
  bool insert(const UpdateKey& key);
  void insert(const StreamId& stream, SeqRange range);
  void merge(const HaveSet& other);
  void erase(const StreamId& stream, SeqRange range);

  // Highest seq held of a stream, 0 when none.
  std::uint64_t head(const StreamId& stream) const;
  // The number of updates in all.
  std::uint64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }

  const std::map<StreamId, std::vector<SeqRange>>& streams() const { return streams_; }

  std::size_t range_count() const;
  // The bytes it takes, roughly, nodes of the map included.
  static constexpr std::size_t stream_overhead_bytes = 128;
  std::size_t memory_bytes() const;

  // The names that `other` has and this lacks.
  HaveSet missing_from(const HaveSet& other) const;
  bool includes(const HaveSet& other) const { return missing_from(other).empty(); }
  bool operator==(const HaveSet& other) const { return streams_ == other.streams_; }

  // Canonical bytes (gossip/PROTOCOL.md, "Have-set"): equal sets, equal bytes.
  void encode(ByteWriter& out) const;
  // Errors: Errc::corrupt for anything that encode() would not have written; Errc::limit beyond limits.h.
  // Memory is bounded by the input: a range costs at least two bytes of it.
  static Result<HaveSet> decode(ByteReader& in);

  void check_invariants() const;

 private:
  std::map<StreamId, std::vector<SeqRange>> streams_;
  std::uint64_t count_ = 0;
};

}  // namespace rumor::gossip
