// The parameters of a part for the walk through a segment (compress/link/adapt_walk.h), and the coding of an amount
// (compress/ADAPT.md, chapters 5, 7 and 9).
//
// Thread: plain values and functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_learning.h"
#include "compress/payload/segment.h"

namespace rumor::compress {

// A part as rows and columns.
struct Shape {
  explicit Shape(const Part& part)
      : count(part.count),
        columns(part.columns <= cells_max ? part.columns : columns_wide),
        first_row(part.begin / columns),
        rows((part.end - 1) / columns - first_row + 1) {
    while ((rows - 1) >> low_bits >= cells_max) ++low_bits;
  }

  static constexpr std::uint32_t columns_wide = 1024;  // for tensors too wide for one set

  std::uint32_t count, columns, first_row, rows;
  unsigned low_bits = 0;  // 0 where the rows are few enough for one set
};

// Priors of the rows and columns of one part, from a history: rates (256 is the average) and leanings. Rows that the
// history does not keep have none.
struct Priors {
  std::vector<std::uint32_t> rows, columns;
  std::vector<std::uint8_t> row_leaning, column_leaning;
};

// The binary logarithm of upper / lower, rounded down, 30 at most. Requires: 1 <= lower <= upper.
inline unsigned half_octaves(std::uint64_t upper, std::uint64_t lower) {
  auto grade = static_cast<unsigned>(std::bit_width(upper) - std::bit_width(lower));
  if (lower << grade > upper) --grade;
  return std::min(grade, 30u);
}

// The same, for a result that probably equals `before`: a processor continues with that value while it checks it.
inline unsigned half_octaves(std::uint64_t upper, std::uint64_t lower, unsigned before) {
  if (lower << before <= upper && upper >> 1 < lower << before) [[likely]]
    return before;
  return half_octaves(upper, lower);
}

// A number from 0 to `most`, with the contexts from `contexts` on and a grade that says how large it may be.
// Io as the walk has it.
template <class Io>
[[gnu::always_inline]] inline bool amount(Io& io, Counts& counts, std::uint32_t& value, std::uint32_t most,
                                          std::uint32_t contexts, unsigned grade) {
  const unsigned context = contexts + (grade < 10 ? grade : 10 + (grade & 1));
  const unsigned shift = grade < 10 ? 0 : (grade - 8) / 2;
  const std::uint32_t units = value >> shift;
  std::uint32_t symbol = 0;
  if constexpr (!Io::searches) symbol = Counts::symbol_of(units);
  if (!io.symbol(Lane::near, counts, context, symbol)) return false;
  std::uint32_t begin = Counts::begins[symbol];
  unsigned bits = Counts::low_bits[symbol] + shift;
  if (symbol + 1 == Counts::symbols) {
    auto length = static_cast<std::uint32_t>(std::bit_width(std::max(units, begin) - begin + 1)) - 1;
    if (!io.number(Lane::near, length, 4)) return false;
    begin += (1u << length) - 1;
    bits = length + shift;
  }
  if (bits > 20) return false;
  std::uint32_t low = value - (begin << shift);
  if (bits > 0 && !io.number(Lane::near, low, bits)) return false;
  value = (begin << shift) + (bits > 0 ? low : 0);
  return value <= most;
}

}  // namespace rumor::compress
