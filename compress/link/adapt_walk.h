// The order in which ADAPT codes a segment (compress/ADAPT.md, chapters 5 to 8), written once for both directions: an
// AdaptIo (adapt_io.h) encodes or decodes what happens, the walk asks for it and lets the model learn.
//
// Thread: one owner; work is spread over segments.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "compress/link/adapt_cells.h"
#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_columns.h"
#include "compress/link/adapt_io.h"
#include "compress/link/adapt_lanes.h"
#include "compress/link/adapt_learning.h"
#include "compress/link/adapt_member.h"
#include "compress/link/adapt_shape.h"
#include "compress/payload/segment.h"

namespace rumor::compress {

template <AdaptIo Io>
class AdaptWalk {
 public:
  // entries: of all parts.
  AdaptWalk(Io& io, std::uint32_t entries) : io_(io), left_(entries) {}

  // Before all parts.
  bool begin() {
    apart_ = left_ >= apart_min;
    return !apart_ || io_.part();
  }

  bool part(const Part& given, const Priors* priors) {
    const Shape shape(given);
    io_.begin(shape);
    std::uint32_t hit = io_.rows_hit();
    if (!rows_hit(shape, hit)) return false;
    begin_rows(shape, hit, priors);
    if (shape.columns == 1) return singles(shape, hit);
    columns_.begin(shape.columns, shape.count, priors != nullptr ? priors->columns.data() : nullptr,
                   priors != nullptr ? priors->column_leaning.data() : nullptr);
    if (!list_rows(shape, hit, priors) || !entries()) return false;
    io_.end(shape);
    return true;
  }

 private:
  static constexpr std::uint32_t apart_min = 96;   // entries of a segment that has two states
  static constexpr std::uint32_t joined_max = 17;  // entries for which one state is enough at the end

  // The states join before the entry, or the step, with which only a few are left.
  bool join_states() {
    if (!apart_ || left_ > joined_max) [[likely]]
      return true;
    apart_ = false;
    return io_.join();
  }

  // How many rows have entries: from 1 to the most there can be.
  bool rows_hit(const Shape& shape, std::uint32_t& hit) {
    const std::uint32_t most = std::min(shape.count, shape.rows);
    if (shape.columns == 1) hit = shape.count;
    if (shape.columns == 1 || most == 1) {
      hit = most;
      return shape.count <= std::uint64_t{shape.rows} * shape.columns;
    }
    std::uint32_t missing = most - hit;
    // 16 for each row, and 64 for each that is expected to be missing if all have the same chance.
    const std::uint64_t ratio = 16 + 32 * std::uint64_t{most} * most / std::max(shape.count, shape.rows);
    if (!amount(io_, counts_, missing, most - 1, Counts::grades, half_octaves(ratio * ratio, 256)))
      return false;
    hit = most - missing;
    return true;
  }

  // With more than half of the rows hit, the set that is coded is that of the others.
  void begin_rows(const Shape& shape, std::uint32_t hit, const Priors* priors) {
    row_priors_ = priors != nullptr && !priors->rows.empty() ? priors->rows.data() : nullptr;
    by_absence_ = 2 * std::uint64_t{hit} > shape.rows;
    cursor_ = 0;
    absent_left_ = by_absence_ ? shape.rows - hit : 0;
    if (shape.low_bits != 0) row_priors_ = nullptr;
    alike_.count = shape.rows;
    if (row_priors_ != nullptr) weigh_rows(shape);
    absent_ = shape.rows;
  }

  // A row with rate x has entries with probability about x / (1 + x).
  void weigh_rows(const Shape& shape) {
    row_weights_.resize(shape.rows);
    const unsigned bits = 30 - static_cast<unsigned>(std::bit_width(shape.rows));
    const double one = static_cast<double>(std::uint64_t{1} << bits);
    const double even = 256.0 * shape.rows;
    std::uint64_t hits = 0, weights = 0;
    for (std::uint32_t i = 0; i < shape.rows; ++i) {
      const double rate = static_cast<double>(std::int64_t{row_priors_[i]} * shape.count);
      const double kind = by_absence_ ? even : rate;
      const auto weight = static_cast<std::uint32_t>(static_cast<std::int64_t>(one * kind / (even + rate)));
      row_weights_[i] = std::max(1u, weight);
      weights += row_weights_[i];
      hits += std::uint64_t{row_weights_[i]} * row_priors_[i];
    }
    row_mean_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, hits / weights));
    weighed_.set(shape.rows, [this](std::uint32_t i) { return row_weights_[i]; });
  }

  // Calls coded(next) with the next of `left` members among the rows from `first` on.
  template <class Coded>
  bool next_of_rows(std::uint32_t first, std::uint32_t left, const Coded& coded) {
    if (row_priors_ != nullptr) return next_of(weighed_.cells(), first, left, coded);
    return next_of(alike_, first, left, coded);
  }

  template <class Cells, class Coded>
  static bool next_of(const Cells& cells, std::uint32_t first, std::uint32_t left, const Coded& coded) {
    // Elsewhere whether a member is the last of its set is too hard to predict for a branch.
    if constexpr (std::is_same_v<Cells, AlikeCells>) {
      if (left == 1) return coded(LastMember(cells, first));
    }
    return coded(NextMember(cells, first, left));
  }

  bool next_row(const Shape& shape, std::uint32_t& row, std::uint32_t rows_left) {
    if (by_absence_) return next_present(shape, row);
    if (rows_left > shape.rows - cursor_) return false;
    if (shape.low_bits == 0) {
      const auto coded = [&](const auto& next) { return io_.member(Lane::far, next, row); };
      if (!next_of_rows(cursor_, rows_left, coded)) return false;
    } else if (!remote_row(shape, row, rows_left)) {
      return false;
    }
    cursor_ = row + 1;
    return rows_left == 1 || cursor_ < shape.rows;
  }

  // Among too many rows for one set: how many times 2^low_bits rows away, then which of those.
  bool remote_row(const Shape& shape, std::uint32_t& row, std::uint32_t rows_left) {
    const AlikeCells groups{.count = ((shape.rows - cursor_ - 1) >> shape.low_bits) + 1};
    const std::uint32_t away = std::max(row, cursor_) - cursor_;
    std::uint32_t group = away >> shape.low_bits, low = away - (group << shape.low_bits);
    const std::uint32_t others = (rows_left - 1) * (AlikeCells::weight / 2) >> shape.low_bits;
    if (!io_.member(Lane::far, NextMember<AlikeCells>::of_groups(groups, rows_left, others), group))
      return false;
    if (!io_.number(Lane::far, low, shape.low_bits)) return false;
    row = cursor_ + (group << shape.low_bits) + low;
    return row < shape.rows;
  }

  bool next_present(const Shape& shape, std::uint32_t& row) {
    if (cursor_ == 0 && absent_left_ > 0 && !next_absent(0)) return false;
    while (cursor_ == absent_) {
      ++cursor_;
      if (!next_absent(cursor_)) return false;
    }
    row = cursor_++;
    return row < shape.rows;
  }

  bool next_absent(std::uint32_t from) {
    absent_ = alike_.count;
    if (absent_left_ == 0) return true;
    std::uint32_t cell = io_.empty_from(from);
    const auto coded = [&](const auto& next) { return io_.member(Lane::far, next, cell); };
    if (!next_of_rows(from, absent_left_, coded)) return false;
    --absent_left_;
    absent_ = cell;
    return true;
  }

  // Rows of one column: an entry each.
  bool singles(const Shape& shape, std::uint32_t hit) {
    for (std::uint32_t j = 0; j < hit; ++j) {
      std::uint32_t row = io_.row(j);
      std::uint32_t minus = io_.minus(j);
      if (!join_states() || !single(shape, row, minus, hit - j)) return false;
      io_.put(j, shape.first_row + row, minus);
    }
    io_.end(shape);
    return true;
  }

  bool single(const Shape& shape, std::uint32_t& row, std::uint32_t& minus, std::uint32_t rows_left) {
    const bool last = --left_ == 0;
    if (by_absence_ || shape.low_bits != 0) {
      if (!next_row(shape, row, rows_left)) return false;
      if (last) return io_.last_sign(minus);
      if (!io_.sign(Lane::near, signs_, Signs::single, minus)) return false;
      signs_.learn(Signs::single, minus);
      return true;
    }
    if (rows_left > shape.rows - cursor_) return false;
    const auto context = [](std::uint32_t) { return Signs::single; };
    const auto coded = [&](const auto& next) {
      return last ? io_.last_entry(next, row, minus)
                  : io_.entry(Lane::near, next, signs_, context, row, minus);
    };
    if (!next_of_rows(cursor_, rows_left, coded)) return false;
    if (!last) signs_.learn(Signs::single, minus);
    cursor_ = row + 1;
    return true;
  }

  // Which rows have entries, and how many.
  bool list_rows(const Shape& shape, std::uint32_t hit, const Priors* priors) {
    rows_.begin(hit, shape.count);
    const std::uint8_t* leaning = row_priors_ != nullptr ? priors->row_leaning.data() : nullptr;
    if (by_absence_ || shape.low_bits != 0) {
      const auto next = [&](auto&, std::uint32_t& row, std::uint32_t rows_left) {
        return next_row(shape, row, rows_left);
      };
      return list_with<false>(shape, hit, leaning, next);
    }
    if (row_priors_ != nullptr) return list_of(weighed_.cells(), shape, hit, leaning);
    return list_of(alike_, shape, hit, leaning);
  }

  template <class Cells>
  bool list_of(const Cells& given, const Shape& shape, std::uint32_t hit, const std::uint8_t* leaning) {
    const Cells cells = given;
    std::uint32_t cursor = 0;
    const auto next = [&](auto& io, std::uint32_t& row, std::uint32_t left) {
      if (left > cells.count - cursor) return false;
      const auto coded = [&](const auto& member) { return io.member(Lane::far, member, row); };
      if (!next_of(cells, cursor, left, coded)) return false;
      cursor = row + 1;
      return true;
    };
    return list_with<true>(shape, hit, leaning, next);
  }

  // local: the rows are found without asking the walk.
  template <bool local, class Next>
  [[gnu::flatten]] bool list_with(const Shape& shape, std::uint32_t hit, const std::uint8_t* leaning,
                                  const Next& next) {
    typename Io::Local io(io_);
    std::uint32_t left = shape.count;
    unsigned grade = 0;
    for (std::uint32_t j = 0; j < hit; ++j) {
      std::uint32_t row = io.row(j), hits = io.hits(j);
      if constexpr (!local) io_.take_back(io);
      if (!next(io, row, hit - j)) return false;
      if constexpr (!local) io.take_back(io_);
      if (!row_hits(io, row, hits, left, hit - j, grade) || hits > shape.columns) return false;
      left -= hits;
      const std::uint32_t leans = leaning != nullptr ? leaning[row] : Leaning::none;
      rows_.add({(shape.first_row + row) * shape.columns, hits, leans});
    }
    io_.take_back(io);
    return true;
  }

  // Entries of a row that has some. left: entries of the part from this row on; rows_left: rows with entries.
  template <class Some>
  [[gnu::always_inline]] bool row_hits(Some& io, std::uint32_t row, std::uint32_t& hits, std::uint32_t left,
                                       std::uint32_t rows_left, unsigned& grade) {
    const std::uint32_t spare = left - rows_left;
    if (rows_left == 1 || spare == 0) {
      hits = spare + 1;
      return true;
    }
    std::uint32_t more = hits - 1;
    grade = row_grade(row, spare, rows_left, grade);
    if (!amount(io, counts_, more, spare, 0, grade)) return false;
    hits = more + 1;
    return true;
  }

  // Twice the binary logarithm of 1 + 4 times the mean that is expected beyond the first entry.
  unsigned row_grade(std::uint32_t row, std::uint32_t spare, std::uint32_t rows_left, unsigned before) const {
    std::uint64_t above = std::uint64_t{4} * spare;
    if (row_priors_ != nullptr)
      above = std::min<std::uint64_t>(above * row_priors_[row] / row_mean_, 1u << 24);
    const std::uint64_t upper = (rows_left + above) * (rows_left + above);
    return half_octaves(upper, std::uint64_t{rows_left} * rows_left, before);
  }

  // All columns and signs of a part, two at a time while both lanes have some.
  bool entries() {
    std::uint32_t near_left = rows_.near_entries(), far_left = rows_.far_entries();
    near_ = LaneCursor(rows_.near(), 0, near_left > 0);
    far_ = LaneCursor(rows_.far(), near_left, far_left > 0);
    while (near_left + far_left > 0) {
      if (!join_states()) return false;
      const bool both = near_left > 0 && far_left > 0, near = near_left > 0;
      const unsigned shift = both ? 1 : 0;  // entries of a step
      std::uint32_t steps = both ? std::min(near_left, far_left) : std::max(near_left, far_left);
      steps = std::min(steps, (columns_.until_due() + shift) >> shift);
      if (apart_) steps = std::min(steps, (left_ - joined_max + shift) >> shift);
      if (steps << shift == left_ && --steps == 0) return last_step(both, near);
      const auto run = [&](const auto& cells) {
        if (!both) return take_one(cells, steps, near);
        return apart_ ? take_both(cells, steps) : take_turns(cells, steps);
      };
      if (!columns_.with_cells(run)) return false;
      if (near) near_left -= steps;
      if (both || !near) far_left -= steps;
      left_ -= steps << shift;
      columns_.grow(steps << shift);
    }
    return true;
  }

  // An entry that has been found, but not yet learned from.
  struct Seen {
    std::uint32_t column = 0, context = 0;
    std::uint32_t minus = 0;
  };

  template <class Some, class Cells>
  bool look(Some& io, Lane lane, const Cells& cells, LaneCursor& at, const Columns::Row& learned,
            Seen& seen) {
    at.enter_row();
    if (at.left > cells.count - at.column) return false;
    seen.column = io.column(at.entry);
    seen.minus = io.minus(at.entry);
    const auto context = [&](std::uint32_t cell) {
      seen.context = Signs::context(at.leaning, learned.leaning[cell]);
      return seen.context;
    };
    return next_of(cells, at.column, at.left, [&](const auto& next) {
      return io.entry(lane, next, signs_, context, seen.column, seen.minus);
    });
  }

  template <class Some>
  [[gnu::always_inline]] void learn(Some& io, LaneCursor& at, Columns::Row& learned, const Seen& seen) {
    signs_.learn(seen.context, seen.minus);
    io.put(at.entry, at.row->begin + seen.column, seen.minus);
    learned.hit(seen.column, seen.minus);
    at.pass(seen.column, seen.minus);
  }

  // Steps of two lanes. Both look before either learns. The loops work on copies, which can stay in
  // registers.
  template <class Cells>
  [[gnu::flatten]] bool take_both(const Cells& given, std::uint32_t steps) {
    typename Io::Local io(io_);
    const Cells cells = given;
    Columns::Row learned = columns_.row();
    LaneCursor near = near_, far = far_;
    for (; steps > 0; --steps) {
      Seen first, second;
      if (!look_both(io, cells, near, first, far, second, learned)) return false;
      learn(io, near, learned, first);
      learn(io, far, learned, second);
    }
    near_ = near, far_ = far;
    io_.take_back(io);
    return true;
  }

  template <class Some, class Cells>
  [[gnu::always_inline]] bool look_both(Some& io, const Cells& cells, LaneCursor& near, Seen& first,
                                        LaneCursor& far, Seen& second, const Columns::Row& learned) {
    near.enter_row();
    far.enter_row();
    if (near.left > cells.count - near.column || far.left > cells.count - far.column) return false;
    first.column = io.column(near.entry), first.minus = io.minus(near.entry);
    second.column = io.column(far.entry), second.minus = io.minus(far.entry);
    const auto context = [&](std::uint32_t cell) {
      return first.context = Signs::context(near.leaning, learned.leaning[cell]);
    };
    const auto other_context = [&](std::uint32_t cell) {
      return second.context = Signs::context(far.leaning, learned.leaning[cell]);
    };
    const auto coded = [&](const auto& one, const auto& two) {
      return io.entries(one, context, first.column, first.minus, two, other_context, second.column,
                        second.minus, signs_);
    };
    if constexpr (std::is_same_v<Cells, AlikeCells>) {
      if (near.left == 1 && far.left == 1)
        return coded(LastMember(cells, near.column), LastMember(cells, far.column));
      if (near.left == 1)
        return coded(LastMember(cells, near.column), NextMember(cells, far.column, far.left));
      if (far.left == 1)
        return coded(NextMember(cells, near.column, near.left), LastMember(cells, far.column));
    }
    return coded(NextMember(cells, near.column, near.left), NextMember(cells, far.column, far.left));
  }

  // Steps of one lane alone.
  template <class Cells>
  [[gnu::flatten]] bool take_one(const Cells& given, std::uint32_t steps, bool near) {
    typename Io::Local io(io_);
    const Cells cells = given;
    Columns::Row learned = columns_.row();
    LaneCursor at = near ? near_ : far_;
    const Lane lane = near ? Lane::near : Lane::far;
    for (; steps > 0; --steps) {
      Seen seen;
      if (!look(io, lane, cells, at, learned, seen)) return false;
      learn(io, at, learned, seen);
    }
    (near ? near_ : far_) = at;
    io_.take_back(io);
    return true;
  }

  // Steps of both lanes in one state.
  template <class Cells>
  bool take_turns(const Cells& cells, std::uint32_t steps) {
    Columns::Row learned = columns_.row();
    for (; steps > 0; --steps) {
      Seen first, second;
      if (!look(io_, Lane::near, cells, near_, learned, first)) return false;
      if (!look(io_, Lane::far, cells, far_, learned, second)) return false;
      learn(io_, near_, learned, first);
      learn(io_, far_, learned, second);
    }
    return true;
  }

  // The step with the last entry of the segment, from which nothing is learned.
  bool last_step(bool both, bool near) {
    if (both) {
      const auto run = [&](const auto& cells) { return take_one(cells, 1, true); };
      if (!columns_.with_cells(run)) return false;
    }
    LaneCursor& at = near && !both ? near_ : far_;
    at.enter_row();
    left_ = 0;
    return columns_.with_cells([&](const auto& cells) {
      if (at.left > cells.count - at.column) return false;
      std::uint32_t column = io_.column(at.entry);
      std::uint32_t minus = io_.minus(at.entry);
      const auto coded = [&](const auto& next) { return io_.last_entry(next, column, minus); };
      if (!next_of(cells, at.column, at.left, coded)) return false;
      io_.put(at.entry, at.row->begin + column, minus);
      return true;
    });
  }

  Io& io_;
  std::uint32_t left_;
  bool apart_ = false;
  HitRows rows_;
  LaneCursor near_, far_;
  Columns columns_;
  Counts counts_;
  Signs signs_;

  AlikeCells alike_;  // rows
  ListedWeights weighed_;
  std::vector<std::uint32_t> row_weights_;
  const std::uint32_t* row_priors_ = nullptr;
  std::uint32_t row_mean_ = 256;
  bool by_absence_ = false;
  std::uint32_t cursor_ = 0;  // first row that can come
  std::uint32_t absent_ = 0, absent_left_ = 0;
};

}  // namespace rumor::compress
