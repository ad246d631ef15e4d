#include "compress/adapt_learning.h"

namespace rumor::compress {

namespace {

// How likely one more entry is, for the mean m in the middle of a context: m / (1 + m), in units of 2^-16.
constexpr std::array<std::uint32_t, Counts::grades> continuing = {3120,  9850,  16990, 24580, 32050, 38860,
                                                                  44800, 49790, 53790, 56890, 54000, 57000};

constexpr std::uint32_t least = 128;  // frequency that no symbol falls below for good
constexpr std::uint32_t whole = 1u << Counts::symbol_bits;

using Target = std::array<std::int32_t, Counts::symbols>;

// Where the symbols begin when all but the least goes to one of them.
constexpr std::array<Target, Counts::symbols> make_targets() {
  std::array<Target, Counts::symbols> targets{};
  for (std::uint32_t symbol = 0; symbol < Counts::symbols; ++symbol) {
    for (std::uint32_t i = 0; i < Counts::symbols; ++i) {
      const std::uint32_t below = i * least;
      targets[symbol][i] =
          static_cast<std::int32_t>(i <= symbol ? below : whole - (Counts::symbols - i) * least);
    }
  }
  return targets;
}

constexpr std::array<Target, Counts::symbols> targets = make_targets();

// The frequencies of geometrically falling values, and the least for each.
constexpr Counts::Table make_initial() {
  Counts::Table table{};
  constexpr std::uint32_t shared = whole - Counts::symbols * least;
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

constexpr Counts::Table initial = make_initial();

}  // namespace

Counts::Counts() : table_(initial) {}

void Counts::learn(std::uint32_t context, std::uint32_t symbol) {
  const int rate = static_cast<int>(std::bit_width(used_[context] + 8u)) - 1;
  used_[context] = static_cast<std::uint8_t>(std::min(used_[context] + 1, 120));
  std::uint32_t* starts = table_[context].data();
  for (std::uint32_t i = 0; i < symbols; i += 4) {
    const Four now = four_at(starts + i);
    Four wanted;
    std::memcpy(&wanted, targets[symbol].data() + i, sizeof wanted);
    const Four moved = now + ((wanted - now) >> rate);
    std::memcpy(starts + i, &moved, sizeof moved);
  }
}

}  // namespace rumor::compress
