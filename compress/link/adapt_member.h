// One step in a set of cells: the choice of the next member (compress/ADAPT.md, chapter 4).
//
// A set of n cells is coded as its members in ascending order. The first of n members, sampled from the remaining
// cells, is beyond a cell with probability about (1 - share)^n. Here share is the weight passed divided by the
// remaining weight; curve_table has that curve. For the last member it is a straight line, without a table.
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compress/link/adapt_cells.h"
#include "compress/link/adapt_tables.h"

namespace rumor::compress {

struct FoundCell {
  std::uint32_t cell, inside, size;  // and its interval: how far the slot is from its start, and its size
};

// For slots where the guess was off: looks at the neighbours, since it is mostly one of them, and then halves
// the cells until one is left. By value, so that the one that is asked stays in registers.
template <class Next>
[[gnu::noinline, gnu::cold]] FoundCell search_cell(const Next next, std::uint32_t slot, std::uint32_t guess) {
  constexpr std::uint32_t near = 4;
  std::uint32_t low = next.first(), high = next.end();
  if (slot < next.start(guess)) {
    high = guess;
    for (std::uint32_t i = 0; i < near && high > low + 1; ++i) {
      if (next.start(high - 1) <= slot) {
        low = high - 1;
        break;
      }
      --high;
    }
  } else {
    low = guess;
    for (std::uint32_t i = 0; i < near && low + 1 < high; ++i) {
      if (next.start(low + 1) > slot) {
        high = low + 1;
        break;
      }
      ++low;
    }
  }
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (next.start(middle) <= slot) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const std::uint32_t from = next.start(low);
  return {low, slot - from, next.start(low + 1) - from};
}

// Finds the cells of two slots, each in the next member of its own set, step by step. A processor looks ahead some
// dozens of instructions, and then works on both.
template <class Next, class OtherNext>
[[gnu::always_inline]] inline void find_both(const Next& one, std::uint32_t slot, FoundCell& found,
                                             const OtherNext& two, std::uint32_t other_slot,
                                             FoundCell& other) {
  const std::uint32_t weight = one.weight_at(slot), other_weight = two.weight_at(other_slot);
  std::uint32_t cell = 0, other_cell = 0;
  one.cells().find_both(weight, cell, other_weight, other_cell);
  const std::uint32_t from = one.inner_start(cell), other_from = two.inner_start(other_cell);
  const std::uint32_t to = one.start(cell + 1), other_to = two.start(other_cell + 1);
  found = {cell, slot - from, to - from};
  other = {other_cell, other_slot - other_from, other_to - other_from};
  if (found.inside >= found.size) [[unlikely]]
    found = search_cell(one, slot, cell);
  if (other.inside >= other.size) [[unlikely]]
    other = search_cell(two, other_slot, other_cell);
}

// Both are whole numbers below 2^53: the quotient in double precision, rounded down, is exact.
inline std::uint64_t quotient(std::uint64_t above, std::uint64_t below) {
  return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(above)) /
                                static_cast<double>(static_cast<std::int64_t>(below))));
}

// The last member: any of the cells from `first` on, by weight.
template <class Cells>
class LastMember {
 public:
  // Requires: first < cells.count.
  LastMember(const Cells& cells, std::uint32_t first)
      : cells_(cells), first_(first), base_(cells.before(first)), rest_(cells.total() - base_) {
    pace_ = quotient(std::uint64_t{scale - 2 * (cells.count - first)} << pace_bits, rest_);
  }

  // Where the interval of this cell begins; that of end() is the whole scale.
  [[gnu::always_inline]] std::uint32_t start(std::uint32_t cell) const {
    const std::uint32_t inner = inner_start(std::min(cell, cells_.count));
    return cell >= cells_.count ? scale : inner;
  }
  std::uint32_t first() const { return first_; }
  std::uint32_t end() const { return cells_.count; }

  // The cell whose interval has this slot in it.
  [[gnu::always_inline]] FoundCell find(std::uint32_t slot) const {
    const std::uint32_t cell = cells_.find(weight_at(slot)), from = inner_start(cell);
    const FoundCell found{cell, slot - from, start(cell + 1) - from};
    if (found.inside < found.size) [[likely]]
      return found;
    return search_cell(*this, slot, cell);
  }

  // For find_both(): the steps of find().
  const Cells& cells() const { return cells_; }
  [[gnu::always_inline]] std::uint32_t weight_at(std::uint32_t slot) const {
    return base_ + static_cast<std::uint32_t>(std::uint64_t{slot} * rest_ >> scale_bits);
  }
  // As start(), of a cell that can be it, or of end().
  [[gnu::always_inline]] std::uint32_t inner_start(std::uint32_t cell) const {
    const std::uint64_t passed = cells_.before(cell) - base_;
    return static_cast<std::uint32_t>(passed * pace_ >> pace_bits) + 2 * (cell - first_);
  }

 private:
  static constexpr unsigned pace_bits = 13;

  const Cells cells_;
  std::uint32_t first_, base_, rest_;
  std::uint64_t pace_;  // parts of the scale for a unit of weight
};

// The first of `left` members that are still to come.
template <class Cells>
class NextMember {
 public:
  // Requires: 1 <= left <= cells.count - first, left <= 2^14.
  NextMember(const Cells& cells, std::uint32_t first, std::uint32_t left)
      : NextMember(cells, first, left, cells.count - left + 1, std::uint64_t{left - 1} * cells.mean >> 1) {}

  // The first of `left` members that may share a cell. others: half the weight that all but one need.
  static NextMember of_groups(const Cells& cells, std::uint32_t left, std::uint32_t others) {
    return NextMember(cells, 0, left, cells.count, others);
  }

  // Where the interval of this cell begins; that of end() is the whole scale.
  [[gnu::always_inline]] std::uint32_t start(std::uint32_t cell) const {
    const std::uint32_t inner = inner_start(std::min(cell, end_));
    return cell >= end_ ? scale : inner;
  }

  // First cell that can be it.
  std::uint32_t first() const { return first_; }

  // First cell that cannot be it, because the others have to come after.
  std::uint32_t end() const { return end_; }

  // The cell whose interval has this slot in it.
  [[gnu::always_inline]] FoundCell find(std::uint32_t slot) const {
    const std::uint32_t cell = cells_.find(weight_at(slot)), from = inner_start(cell);
    const FoundCell found{cell, slot - from, start(cell + 1) - from};
    if (found.inside < found.size) [[likely]]
      return found;
    return search_cell(*this, slot, cell);
  }

  // For find_both(): the steps of find().
  const Cells& cells() const { return cells_; }
  [[gnu::always_inline]] std::uint32_t weight_at(std::uint32_t slot) const {
    constexpr unsigned low_bits = scale_bits - Curve::slot_bits;
    const std::uint32_t* chord = curve_->chords.data() + (slot >> low_bits);
    const std::uint64_t low = slot & ((1u << low_bits) - 1);
    const std::uint64_t steps = chord[0] + (low * (chord[1] - chord[0]) >> low_bits);
    const std::uint64_t weight = base_ + (steps * stride_ >> 32);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(weight, cells_.before(end_) - 1));
  }
  // As start(), of a cell that can be it, or of end().
  [[gnu::always_inline]] std::uint32_t inner_start(std::uint32_t cell) const {
    const std::uint64_t passed = cells_.before(cell) - base_;
    const std::uint64_t steps = std::min<std::uint64_t>(passed * pace_ >> 16, curve_steps);
    const Curve::Piece piece = curve_->pieces[steps >> piece_bits];
    const std::uint64_t inside = steps & ((1u << piece_bits) - 1);
    return piece.height + static_cast<std::uint32_t>(piece.rise * inside >> piece_bits) + 2 * (cell - first_);
  }

 private:
  NextMember(const Cells& cells, std::uint32_t first, std::uint32_t left, std::uint32_t end,
             std::uint64_t others)
      : cells_(cells),
        curve_(&curve_table[std::min(left, curves) - 1]),
        first_(first),
        end_(end),
        base_(cells.before(first)) {
    const std::int64_t rest = cells.total() - base_;
    const auto extent = std::max(rest >> 1, rest - static_cast<std::int64_t>(others));
    // Whole numbers below 2^53: the quotient in double precision, rounded down, is exact. The operands of the stride
    // are known before the weight.
    double all = curve_->all;
    std::uint64_t share = curve_->share;
    if (left >= curves) {
      all = static_cast<double>(static_cast<std::int64_t>(left * curve_share));
      share = static_cast<std::uint64_t>(static_cast<std::int64_t>(0x1p63 / all));
    }
    pace_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(all / static_cast<double>(extent)));
    stride_ = static_cast<std::uint64_t>(extent) * share >> 15;
  }

  const Cells cells_;
  const Curve* curve_;
  std::uint32_t first_, end_, base_;
  std::uint64_t pace_;    // steps for a unit of weight, times 2^16
  std::uint64_t stride_;  // weight for a step, times 2^32
};

}  // namespace rumor::compress
