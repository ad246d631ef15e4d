#include "compress/link/adapt_learning.h"

namespace rumor::compress {

namespace {

// How likely one more entry is, for the mean m in the middle of a context: m / (1 + m), in units of 2^-16.
constexpr std::array<std::uint32_t, Counts::grades> continuing = {3120,  9850,  16990, 24580, 32050, 38860,
                                                                  44800, 49790, 53790, 56890, 54000, 57000};

// The frequencies of geometrically falling values, and the least for each.
constexpr Counts::Table make_initial(std::uint32_t least) {
  Counts::Table table{};
  constexpr std::uint32_t whole = 1u << Counts::symbol_bits;
  const std::uint32_t shared = whole - Counts::symbols * least;
  for (std::uint32_t context = 0; context < Counts::contexts; ++context) {
    std::uint64_t beyond = shared;
    std::uint32_t value = 0;
    for (std::uint32_t symbol = 0; symbol < Counts::symbols; ++symbol) {
      for (; value < Counts::begins[symbol]; ++value)
        beyond = beyond * continuing[context % Counts::grades] >> 16;
      table[context][symbol] = static_cast<std::uint32_t>(shared - beyond + symbol * least);
    }
    table[context][Counts::symbols] = whole;
  }
  return table;
}

}  // namespace

const Counts::Table& Counts::initial() {
  static constexpr Table table = make_initial(least);
  return table;
}

Counts::Counts() : table_(initial()) {}

}  // namespace rumor::compress
