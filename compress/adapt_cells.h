// Cells, a set of which is coded: the rows of a part, or the columns of one of its rows, each with a weight
// that says how often it is expected (compress/ADAPT.md, chapters 4 and 6).
//
// A set of n cells is coded as its members in ascending order. The first of n, drawn from the cells that are
// left, lies beyond a cell with probability about (1 - share)^n, where share is the weight passed over the
// weight that is left; curve_table has that curve.
//
// Thread: plain values; Cells is owned by one coder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compress/adapt_tables.h"

namespace rumor::compress {

// Cells as the coder looks at them: what is needed for each step, without owner.
struct CellView {
  static constexpr std::uint32_t block = 8;  // cells that one entry of the index stands for
  static constexpr std::uint32_t alike_weight = 64;

  const std::uint32_t* sums = nullptr;   // null: all cells weigh alike_weight
  const std::uint16_t* index = nullptr;  // by y >> index_shift: the last block that begins at or before it
  std::uint32_t count = 0;
  std::uint32_t mean = alike_weight;
  unsigned index_shift = 0;

  // Weight of all cells before this one, up to count.
  std::uint32_t before(std::uint32_t cell) const {
    return sums == nullptr ? cell * alike_weight : sums[cell];
  }

  // The cell in which the weight y lies: the last whose before() is not above y.
  // Requires: y < before(count); an index.
  std::uint32_t find(std::uint32_t y) const {
    if (sums == nullptr) return y / alike_weight;
    const std::uint32_t* at = sums + std::size_t{index[y >> index_shift]} * block;
    while (at[block] <= y) at += block;
    std::uint32_t inside = 0;
    for (std::uint32_t i = 1; i < block; ++i) inside += at[i] <= y ? 1 : 0;
    return static_cast<std::uint32_t>(at - sums) + inside;
  }
};

// Cells and their weights as running sums.
class Cells {
 public:
  // All alike. Requires: 1 <= count <= cells_max.
  void reset(std::uint32_t count);

  // Weights as given, each at least 1, fewer than 2^31 together. searched: CellView::find() will be called.
  void set(const std::uint32_t* weights, std::uint32_t count, bool searched);

  // Valid until the next reset() or set().
  const CellView& view() const { return view_; }
  std::uint32_t count() const { return view_.count; }

 private:
  void index();

  CellView view_;
  std::vector<std::uint32_t> sums_;  // count + 1, then filled up with the largest number
  std::vector<std::uint16_t> index_;
};

// One step: which of the cells from `first` on is the next of `left` members.
class NextMember {
 public:
  // Requires: 1 <= left <= cells.count - first, left <= 2^14.
  NextMember(const CellView& cells, std::uint32_t first, std::uint32_t left)
      : NextMember(cells, first, left, cells.count - left + 1, std::uint64_t{left - 1} * cells.mean >> 1) {}

  // The first of `left` members that may share a cell. others: half the weight that all but one need.
  static NextMember of_groups(const CellView& cells, std::uint32_t left, std::uint32_t others) {
    return NextMember(cells, 0, left, cells.count, others);
  }

  // Where the interval of this cell begins; that of end() is the whole scale.
  std::uint32_t start(std::uint32_t cell) const {
    if (cell >= end_) return scale;
    const std::uint64_t passed = cells_.before(cell) - base_;
    const std::uint64_t steps = std::min<std::uint64_t>(passed * pace_ >> 16, curve_steps);
    const std::uint32_t piece = static_cast<std::uint32_t>(steps >> piece_bits);
    const std::uint64_t inside = steps & ((1u << piece_bits) - 1);
    const std::uint64_t rise = curve_->height[piece + 1] - curve_->height[piece];
    return curve_->height[piece] + static_cast<std::uint32_t>(rise * inside >> piece_bits) +
           2 * (cell - first_);
  }

  // First cell that can be it.
  std::uint32_t first() const { return first_; }

  // First cell that cannot be it, because the others have to come after.
  std::uint32_t end() const { return end_; }

  struct Found {
    std::uint32_t cell, from, to;
  };
  // The cell whose interval has this slot in it, with its interval.
  Found find(std::uint32_t slot) const;

 private:
  NextMember(const CellView& cells, std::uint32_t first, std::uint32_t left, std::uint32_t end,
             std::uint64_t others);
  std::uint32_t guess(std::uint32_t slot) const;
  // By value, so that the one that is asked stays in registers.
  [[gnu::noinline, gnu::cold]] static Found search(NextMember next, std::uint32_t slot);

  const CellView cells_;
  const Curve* curve_;
  std::uint32_t first_, left_, end_, base_;
  std::uint64_t extent_;  // weight that counts as all that is left
  std::uint64_t pace_;    // steps for a unit of weight, times 2^16
};

inline NextMember::NextMember(const CellView& cells, std::uint32_t first, std::uint32_t left,
                              std::uint32_t end, std::uint64_t others)
    : cells_(cells),
      curve_(&curve_table[std::min(left, curves) - 1]),
      first_(first),
      left_(left),
      end_(end),
      base_(cells.before(first)) {
  const std::uint64_t rest = cells.before(cells.count) - base_;
  extent_ = std::max(rest >> 1, rest > others ? rest - others : 0);
  constexpr std::uint64_t one = std::uint64_t{1} << 40;
  const std::uint64_t ends = left <= reach ? one : left * (one / reach);
  // Both are whole numbers below 2^53: the quotient in double precision, rounded down, is exact.
  pace_ = static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(ends)) /
                                    static_cast<double>(static_cast<std::int64_t>(extent_)));
}

inline std::uint32_t NextMember::guess(std::uint32_t slot) const {
  const Curve::Entry& entry = curve_->entries[slot >> (scale_bits - 6)];
  std::uint32_t piece = entry.piece + (entry.ends <= slot ? 1 : 0);
  while (piece + 1 < curve_pieces && curve_->height[piece + 1] <= slot) ++piece;
  const std::uint64_t above = slot - curve_->height[piece];
  const std::uint64_t steps =
      (std::uint64_t{piece} << piece_bits) + (above * curve_->inverse_slope[piece] >> 26);
  const std::uint64_t span = left_ < curves ? extent_ * curve_->span >> 16 : extent_ * reach / left_;
  const std::uint64_t weight = base_ + (steps * span >> 24);
  return weight >= cells_.before(end_) ? end_ - 1 : cells_.find(static_cast<std::uint32_t>(weight));
}

inline NextMember::Found NextMember::find(std::uint32_t slot) const {
  const std::uint32_t cell = guess(slot);
  const Found found{cell, start(cell), start(cell + 1)};
  if (found.from <= slot && slot < found.to) [[likely]]
    return found;
  return search(*this, slot);
}

}  // namespace rumor::compress
