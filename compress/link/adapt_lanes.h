// The two lanes in which the columns of a part are coded (compress/ADAPT.md, chapter 5): the rows whose middle is in
// the first half of the entries, and the others. A step takes the next entry of each lane, so a decoder finds two
// columns at a time that do not wait for each other.
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compress/link/adapt_learning.h"

namespace rumor::compress {

// A row with entries: the position of its first column, how many entries, and which sign it leans to.
struct HitRow {
  std::uint32_t begin, hits, leaning;
};

// The rows of a part that have entries, and which of them are in the far lane.
class HitRows {
 public:
  // Makes room for `rows` rows of a part with `entries` entries.
  void begin(std::uint32_t rows, std::uint32_t entries) {
    if (rows_.size() < rows) rows_.resize(rows);
    entries_ = entries;
    rows_listed_ = near_rows_ = near_entries_ = entries_listed_ = 0;
  }

  void add(const HitRow& row) {
    rows_[rows_listed_++] = row;
    const std::uint32_t near = 2 * entries_listed_ + row.hits <= entries_ ? 1 : 0;
    near_rows_ += near;
    near_entries_ += row.hits & (0 - near);
    entries_listed_ += row.hits;
  }

  const HitRow* near() const { return rows_.data(); }
  const HitRow* far() const { return rows_.data() + near_rows_; }
  std::uint32_t near_entries() const { return near_entries_; }
  std::uint32_t far_entries() const { return entries_ - near_entries_; }

 private:
  std::vector<HitRow> rows_;
  std::uint32_t entries_ = 0, rows_listed_ = 0, entries_listed_ = 0;
  std::uint32_t near_rows_ = 0, near_entries_ = 0;
};

// Where a lane is.
struct LaneCursor {
  const HitRow* row = nullptr;
  std::uint32_t left = 0;     // entries of the row still to come
  std::uint32_t column = 0;   // the first that can come
  std::uint32_t leaning = 0;  // of the row
  std::uint32_t entry = 0;    // the next one, counted within the part

  LaneCursor() = default;
  // At the first entry of this row. Requires: a row, unless nothing is asked of this lane.
  LaneCursor(const HitRow* first, std::uint32_t first_entry, bool any) : row(first), entry(first_entry) {
    if (any) left = first->hits, leaning = first->leaning;
  }

  // Past an entry. Then to the next row when this one has no more: enter_row().
  void pass(std::uint32_t at, std::uint32_t minus) {
    leaning = Leaning::moved(leaning, minus);
    column = at + 1;
    --left;
    ++entry;
  }

  // To be called before an entry. Without a branch: where a row ends is as good as random.
  void enter_row() {
    const std::uint32_t over = left == 0 ? 1 : 0, same = over - 1;
    row += over;
    left |= row->hits & ~same;
    column &= same;
    leaning = (leaning & same) | (row->leaning & ~same);
  }
};

}  // namespace rumor::compress
