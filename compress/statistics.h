// The cost of updates in this format and in the layouts of other systems: the figures of `rumor stats`.
//
// Thread: one owner. Memory: a few words a tensor; the layout is referred to and must outlive the object.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compress/link/adapt.h"
#include "compress/payload/update.h"

namespace rumor::compress {

// log2 C(n, k) + k: bits of k independent positions out of n, and k signs. 0 when k is 0.
double bound_bits(std::uint64_t n, std::uint64_t k);

// Total bytes each layout takes for the same updates (the names are those of `rumor stats --json`).
struct LayoutBytes {
  std::uint64_t rumor = 0;
  // The same updates as a slow link carries them: each on its own, and with the history of one connection.
  std::uint64_t rumor_adapt = 0, rumor_link = 0;
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

// Segments by mode.
struct ModeCounts {
  std::uint64_t raw = 0, rice = 0, bitmap = 0, adapt = 0, link = 0;
  std::array<std::pair<const char*, std::uint64_t>, 5> named() const {
    return {{{"raw", raw}, {"rice", rice}, {"bitmap", bitmap}, {"adapt", adapt}, {"link", link}}};
  }
};

struct TensorTotals {
  std::uint64_t entries = 0;
  std::uint64_t bits = 0;  // its share of the payload: count, fields and quotients, not head and filling
  double bound_bits = 0;   // of its entries within the tensor
  double threshold = 0;    // mean step over the updates with entries here, in weight units (0 when unknown)
  double mass = 0;         // sum of the steps of all entries, in weight units (0 when unknown)
  std::uint64_t updates = 0;  // with entries here
  ModeCounts modes;           // of the segments with entries here
};

// One update.
struct UpdateFigures {
  std::uint64_t entries = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t adapt_bytes = 0, link_bytes = 0;  // 0 where other layouts were not asked for
  double bound_bits = 0;
  double threshold = 0;  // mean step of its entries, in weight units (0 when unknown)
};

class Statistics {
 public:
  // grid_bits: a step of 1 is 2^-grid_bits in weight units; none when the steps mean nothing.
  Statistics(const ParamLayout& layout, std::optional<int> grid_bits);

  // Counts one update: encodes it, decodes it again and compares. `compare_layouts` does the same with the
  // forms of slow links and sizes the other layouts (slow: zstd at level 19).
  // Requires: `update` as encode() wants it.
  void add(const SparseUpdate& update, bool compare_layouts);

  std::uint64_t updates() const { return updates_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  double density() const;               // entries / (updates * params)
  double bits_per_entry() const;        // payload bits / entries
  double bound_bits_per_entry() const;  // sum of bound_bits / entries
  double ratio() const;                 // dense fp32 bytes / payload bytes
  double update_bytes_mean() const;     // payload bytes of an update
  // Every update so far came back from its payload unchanged.
  bool round_trip_exact() const { return round_trip_exact_; }
  const LayoutBytes& layouts() const { return layouts_; }
  // Segments by the mode that a link with a history carried them in.
  const ModeCounts& modes() const { return modes_; }
  const std::vector<UpdateFigures>& history() const { return history_; }
  const std::vector<TensorTotals>& tensors() const { return tensors_; }

 private:
  void add_tensors(const SparseUpdate& update);
  void add_link_forms(const SparseUpdate& update, UpdateFigures& figures);

  const ParamLayout& layout_;
  std::optional<int> grid_bits_;
  LinkHistory sender_, receiver_;
  std::uint64_t updates_ = 0, entries_ = 0, payload_bytes_ = 0;
  double bound_bits_ = 0;
  bool round_trip_exact_ = true;
  LayoutBytes layouts_;
  ModeCounts modes_;
  std::vector<UpdateFigures> history_;
  std::vector<TensorTotals> tensors_;
};

}  // namespace rumor::compress
