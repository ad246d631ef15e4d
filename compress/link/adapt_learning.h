// The statistics that the ADAPT coder learns while it codes, except those of columns: how many rows have entries,
// how many entries each row has, and how signs correlate (compress/ADAPT.md, chapters 5, 7 and 8). Encoder and
// decoder feed it the same facts in the same order, so both learn the same.
//
// Thread: plain values, one owner.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "compress/link/adapt_cells.h"
#include "compress/link/adapt_tables.h"

namespace rumor::compress {

// Frequencies of 16 symbols for each context, out of 2^20. Source: mixing of cumulative frequencies towards
// those of the symbol that came (Giesen 2015).
class Counts {
 public:
  static constexpr unsigned symbol_bits = 20;
  static constexpr std::uint32_t symbols = 16;
  static constexpr std::uint32_t grades = 12;  // contexts for entries of rows, and as many for rows
  static constexpr std::uint32_t contexts = 2 * grades;

  // Where each symbol begins, and 2^20 at the end, for each context.
  using Table = std::array<std::array<std::uint32_t, symbols + 1>, contexts>;

  // The values at which symbols begin; the offset from there follows as plain bits.
  static constexpr std::array<std::uint32_t, symbols> begins = {0, 1,  2,  3,  4,  5,  6,  7,
                                                                8, 12, 16, 24, 32, 48, 64, 96};
  static constexpr std::array<std::uint8_t, symbols> low_bits = {0, 0, 0, 0, 0, 0, 0, 0,
                                                                 2, 2, 3, 3, 4, 4, 5, 0};

  Counts();

  // The last that does not begin above this value.
  static std::uint32_t symbol_of(std::uint32_t value) { return symbols_of[std::min(value, begins.back())]; }

  std::uint32_t start(std::uint32_t context, std::uint32_t symbol) const { return table_[context][symbol]; }

  std::uint32_t find(std::uint32_t context, std::uint32_t value) const {
    const std::uint32_t* starts = table_[context].data();
    const Four values = four_alike(value);
    return eight_not_above(starts, values) + eight_not_above(starts + 8, values) - 1;
  }

  void learn(std::uint32_t context, std::uint32_t symbol) {
    const auto rate = static_cast<int>(rates_of[used_[context]]);
    used_[context] =
        static_cast<std::uint8_t>(used_[context] + (used_[context] < rates_of.size() - 1 ? 1 : 0));
    std::uint32_t* starts = table_[context].data();
    const std::uint32_t* wanted = wanted_of[symbol].data();
    for (std::uint32_t i = 0; i < symbols; i += 4) {
      const Four now = four_at(starts + i), moved = now + ((four_at(wanted + i) - now) >> rate);
      std::memcpy(starts + i, &moved, sizeof moved);
    }
  }

 private:
  static constexpr int least_bits = 7;  // frequency that no symbol falls below for good
  static constexpr std::uint32_t least = 1u << least_bits;

  static const Table& initial();
  static constexpr std::array<std::uint8_t, begins.back() + 1> symbols_of = [] {
    std::array<std::uint8_t, begins.back() + 1> made{};
    for (std::uint32_t symbol = 0; symbol < symbols; ++symbol) {
      for (std::uint32_t i = begins[symbol]; i < made.size(); ++i)
        made[i] = static_cast<std::uint8_t>(symbol);
    }
    return made;
  }();

  // Where the symbols begin when all but the least goes to the one that came.
  static constexpr auto wanted_of = [] {
    std::array<std::array<std::uint32_t, symbols>, symbols> made{};
    for (std::uint32_t came = 0; came < symbols; ++came) {
      for (std::uint32_t i = 0; i < symbols; ++i)
        made[came][i] = i * least + (i > came ? (1u << symbol_bits) - symbols * least : 0);
    }
    return made;
  }();
  // By how often a context was used: the share of the way, as a power of two.
  static constexpr auto rates_of = [] {
    std::array<std::uint8_t, 121> made{};
    for (std::uint32_t used = 0; used < made.size(); ++used)
      made[used] = static_cast<std::uint8_t>(std::bit_width(used + 8) - 1);
    return made;
  }();

  Table table_;
  std::array<std::uint8_t, contexts> used_{};
};

// Signs are masks: all ones for minus, 0 for plus. Code uses them by arithmetic, without a branch, since a sign is as
// good as random.
inline std::uint32_t sign_mask(bool negative) {
  std::uint32_t minus = 0u - static_cast<std::uint32_t>(negative);
  __asm__("" : "+r"(minus));  // keeps a compiler from making it a branch after all
  return minus;
}

// The recent signs of a row or of a column: 0 (mostly minus) to 6 (mostly plus).
struct Leaning {
  static constexpr std::uint32_t count = 7;
  static constexpr std::uint8_t none = 3;

  // After one more sign.
  static std::uint8_t moved(std::uint32_t leaning, std::uint32_t minus) {
    static constexpr std::array<std::uint8_t, 2 * count> next = {1, 2, 3, 4, 5, 6, 6, 0, 0, 1, 2, 3, 4, 5};
    return next[leaning + (count & minus)];
  }
  // The part of the leaning that the next message keeps.
  static std::uint8_t remembered(std::uint8_t leaning) {
    return std::clamp<std::uint8_t>(leaning, 1, count - 2);
  }
};

// Probability of a minus for each context, in units of 2^-22.
class Signs {
 public:
  static constexpr std::uint32_t single = Leaning::count * Leaning::count;  // where rows have one column
  static constexpr std::uint32_t contexts = single + 1;

  Signs() : probability_(initial) {}

  static std::uint32_t context(std::uint32_t row, std::uint32_t column) {
    return Leaning::count * row + column;
  }

  // How much of an interval of this size belongs to minus: at least 1, and less than all. Requires: size
  // >= 2.
  std::uint32_t share(std::uint32_t context, std::uint32_t size) const {
    return 1 + static_cast<std::uint32_t>(std::uint64_t{size - 2} * probability_[context] >> 22);
  }

  void learn(std::uint32_t context, std::uint32_t minus) {
    const std::uint32_t used = used_[context], p = probability_[context], plus = ~minus;
    const auto step =
        static_cast<std::uint32_t>(std::uint64_t{p ^ (minus & ((1u << 22) - 1))} * learning_rate[used] >> 16);
    probability_[context] = p + ((step ^ plus) - plus);
    used_[context] = static_cast<std::uint8_t>(used + (used < rates - 1 ? 1 : 0));
  }

 private:
  static constexpr std::array<std::uint32_t, contexts> initial = [] {
    constexpr std::uint32_t even = 1u << 21, step = 3u << 16;
    std::array<std::uint32_t, contexts> made{};
    for (std::uint32_t i = 0; i < single; ++i)
      made[i] = even + step * (2 * Leaning::none) - step * (i / Leaning::count + i % Leaning::count);
    made[single] = even;
    return made;
  }();

  std::array<std::uint32_t, contexts> probability_;
  std::array<std::uint8_t, contexts> used_{};
};

}  // namespace rumor::compress
