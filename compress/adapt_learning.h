// What the ADAPT coder learns while it codes: how often each column is hit, how many entries rows have, and
// how signs go together (compress/ADAPT.md, chapters 6 to 8). Encoder and decoder tell it the same things in
// the same order, so both know the same.
//
// Thread: plain values, one owner.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "compress/adapt_cells.h"
#include "compress/adapt_tables.h"

namespace rumor::compress {

// The columns of one part: their hits so far, and which sign each leans to.
class Columns {
 public:
  // prior: what an earlier history says of each column, 256 on the average; null without.
  void begin(std::uint32_t count, const std::uint32_t* prior, bool searched);

  const Cells& cells() const { return cells_; }

  // 0 (mostly minus) to 4 (mostly plus).
  std::uint32_t tendency(std::uint32_t column) const { return tendency_[column]; }

  void hit(std::uint32_t column, bool negative) {
    squares_ += 2 * std::uint32_t{hits_[column]} + 1;
    ++hits_[column];
    const int leaning = tendency_[column] + (negative ? -1 : 1);
    tendency_[column] = static_cast<std::uint8_t>(std::clamp(leaning, 0, 4));
  }

  // After a row with this many hits.
  void end_row(std::uint32_t hits) {
    total_ += hits;
    fresh_ += hits;
    if (fresh_ >= std::max({1u, std::min(total_ >> 2, cells_.count() >> 4), total_ >> 4})) renew();
  }

 private:
  struct Spread {
    std::uint64_t even, excess;
  };
  Spread spread() const;
  void renew();

  Cells cells_;
  std::vector<std::uint16_t> hits_;
  std::vector<std::uint8_t> tendency_;
  std::vector<std::uint32_t> weights_;
  const std::uint32_t* prior_ = nullptr;
  bool searched_ = false;
  std::uint32_t total_ = 0, fresh_ = 0;
  std::uint64_t squares_ = 0;  // sum of hits^2
};

// Frequencies of 16 symbols for each context, out of 2^20. Source: mixing of cumulative frequencies towards
// those of the symbol that came (Giesen 2015).
class Counts {
 public:
  static constexpr unsigned symbol_bits = 20;
  static constexpr std::uint32_t symbols = 16;
  static constexpr std::uint32_t contexts = 12;

  // Where each symbol begins, and 2^20 at the end, for each context.
  using Table = std::array<std::array<std::uint32_t, symbols + 1>, contexts>;

  // The values at which symbols begin; what lies between them follows as plain bits.
  static constexpr std::array<std::uint32_t, symbols> begins = {0, 1,  2,  3,  4,  5,  6,  7,
                                                                8, 12, 16, 24, 32, 48, 64, 96};
  static constexpr std::array<std::uint8_t, symbols> low_bits = {0, 0, 0, 0, 0, 0, 0, 0,
                                                                 2, 2, 3, 3, 4, 4, 5, 0};

  Counts();

  std::uint32_t start(std::uint32_t context, std::uint32_t symbol) const { return table_[context][symbol]; }

  std::uint32_t find(std::uint32_t context, std::uint32_t value) const {
    std::uint32_t symbol = 0;
    for (std::uint32_t i = 1; i < symbols; ++i) symbol += table_[context][i] <= value ? 1 : 0;
    return symbol;
  }

  void learn(std::uint32_t context, std::uint32_t symbol);

 private:
  Table table_;
  std::array<std::uint8_t, contexts> used_{};
};

// Probability of a minus for each context, in units of 2^-22.
class Signs {
 public:
  static constexpr std::uint32_t tendencies = 5;  // of a row, and of a column
  static constexpr std::uint32_t single = 25;     // the context where rows have one column
  static constexpr std::uint32_t contexts = 26;

  Signs() { probability_.fill(1u << 21); }

  // How much of an interval of this size belongs to minus: at least 1, and less than all. Requires: size
  // >= 2.
  std::uint32_t share(std::uint32_t context, std::uint32_t size) const {
    return 1 + static_cast<std::uint32_t>(std::uint64_t{size - 2} * probability_[context] >> 22);
  }

  void learn(std::uint32_t context, bool negative) {
    const std::uint64_t rate = learning_rate[used_[context]], p = probability_[context];
    const std::uint64_t most = (1u << 22) - 1;
    probability_[context] =
        static_cast<std::uint32_t>(negative ? p + ((most - p) * rate >> 16) : p - (p * rate >> 16));
    used_[context] = static_cast<std::uint8_t>(std::min<std::uint32_t>(used_[context] + 1, rates - 1));
  }

 private:
  std::array<std::uint32_t, contexts> probability_;
  std::array<std::uint8_t, contexts> used_{};
};

}  // namespace rumor::compress
