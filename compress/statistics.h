// What updates cost, in this format and in the layouts others use: the figures of `rumor stats`.
//
// Thread: one owner. Memory: a few words a tensor; the layout is referred to and must outlive the object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compress/update.h"

namespace rumor::compress {

// log2 C(n, k) + k: bits of k independent positions out of n, and k signs. 0 when k is 0.
double bound_bits(std::uint64_t n, std::uint64_t k);

// Total bytes each layout takes for the same updates (the names are those of `rumor stats --json`).
struct LayoutBytes {
  std::uint64_t rumor = 0;
  // Index with the sign in bit 31.
  std::uint64_t u32 = 0;
  // Chunks of 65,536 and of 4,096 parameters: count (LEB128), 16-bit or 12-bit positions, sign bits.
  std::uint64_t u16_chunk = 0;
  std::uint64_t packed12_chunk = 0;
  // Gap * 2 + sign as LEB128, over the whole vector; and these bytes through zstd level 19.
  std::uint64_t leb128_gaps = 0;
  std::uint64_t zstd19_gaps = 0;
  // Rice gaps over the whole vector: a byte for the best parameter, count (LEB128), gaps, sign bits.
  std::uint64_t rice_gaps = 0;
};

struct TensorTotals {
  std::uint64_t entries = 0;
  double threshold = 0;     // mean over updates, in weight units (0 when unknown)
  double residual_rms = 0;  // of the last update (0 when unknown)
  std::uint64_t bits = 0;   // its share of the payload: count, fields and quotients, not head and filling
};

class Statistics {
 public:
  explicit Statistics(const ParamLayout& layout);

  // Counts one update: encodes it, decodes it again and compares. `compare_layouts` also sizes the other
  // layouts (slow: zstd at level 19). Requires: `update` as encode() wants it.
  void add(const SparseUpdate& update, double threshold, bool compare_layouts);

  std::uint64_t updates() const { return updates_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  double density() const;               // entries / (updates * params)
  double bits_per_entry() const;        // payload bits / entries
  double bound_bits_per_entry() const;  // sum of bound_bits / entries
  double ratio() const;                 // dense fp32 bytes / payload bytes
  // Every update so far came back from its payload unchanged.
  bool round_trip_exact() const { return round_trip_exact_; }
  const LayoutBytes& layouts() const { return layouts_; }
  const std::vector<TensorTotals>& tensors() const { return tensors_; }
  std::vector<TensorTotals>& tensors() { return tensors_; }

 private:
  const ParamLayout& layout_;
  std::uint64_t updates_ = 0, entries_ = 0, payload_bytes_ = 0;
  double bound_bits_ = 0;
  bool round_trip_exact_ = true;
  LayoutBytes layouts_;
  std::vector<TensorTotals> tensors_;
};

}  // namespace rumor::compress
