#include "compress/adapt_learning.h"

namespace rumor::compress {

namespace {

// How likely one more entry is, for the mean m in the middle of a context: m / (1 + m), in units of 2^-16.
constexpr std::array<std::uint32_t, Counts::contexts> continuing = {3120,  9850,  16990, 24580, 32050, 38860,
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
      for (; value < Counts::begins[symbol]; ++value) beyond = beyond * continuing[context] >> 16;
      table[context][symbol] = static_cast<std::uint32_t>(shared - beyond + symbol * least);
    }
    table[context][Counts::symbols] = whole;
  }
  return table;
}

constexpr Counts::Table initial = make_initial();

}  // namespace

void Columns::begin(std::uint32_t count, const std::uint32_t* prior, bool searched) {
  prior_ = prior;
  searched_ = searched;
  hits_.assign(count, 0);
  tendency_.assign(count, 2);
  if (weights_.size() < count) weights_.resize(count);
  total_ = fresh_ = 0;
  squares_ = 0;
  cells_.reset(count);
  if (prior != nullptr) renew();
}

// Hits against what was expected of them: how far the mean of squares exceeds that of chance says how widely
// the rates are spread around what was expected.
Columns::Spread Columns::spread() const {
  const std::uint64_t total = total_;
  std::uint64_t count = hits_.size();
  if (prior_ == nullptr) {
    const std::uint64_t even = total * total / count;
    return {even, squares_ > even + total ? squares_ - even - total : 0};
  }
  std::uint64_t prior_squares = 0, foretold = 0;
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    prior_squares += std::uint64_t{prior_[i]} * prior_[i];
    foretold += std::uint64_t{prior_[i]} * hits_[i];
  }
  count *= 256;
  const std::uint64_t even = total * (total * prior_squares / count) / count;
  const std::uint64_t chance = 2 * total * foretold / count + total;
  return {even, squares_ + even > chance ? squares_ + even - chance : 0};
}

// A column that had h hits goes on with a rate like (a p + h), where p is what was expected of it and a the
// shape of the gamma distribution of the rates around that.
void Columns::renew() {
  fresh_ = 0;
  const auto [even, excess] = spread();
  constexpr std::uint64_t trust = 8;
  const auto shape =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(64 * (even + trust) / (excess + trust), 2, 4096));
  const std::uint32_t count = cells_.count();
  for (std::uint32_t i = 0; i < count; ++i) weights_[i] = shape + 64 * std::uint32_t{hits_[i]};
  if (prior_ != nullptr) {
    for (std::uint32_t i = 0; i < count; ++i)
      weights_[i] = std::max(1u, static_cast<std::uint32_t>(std::uint64_t{shape} * prior_[i] >> 8)) +
                    64 * std::uint32_t{hits_[i]};
  }
  cells_.set(weights_.data(), count, searched_);
}

Counts::Counts() : table_(initial) {}

void Counts::learn(std::uint32_t context, std::uint32_t symbol) {
  const int rate = static_cast<int>(std::bit_width(used_[context] + 8u)) - 1;
  used_[context] = static_cast<std::uint8_t>(std::min(used_[context] + 1, 120));
  for (std::uint32_t i = 0; i < symbols; ++i) {
    const auto now = static_cast<std::int32_t>(table_[context][i]);
    table_[context][i] = static_cast<std::uint32_t>(now + ((targets[symbol][i] - now) >> rate));
  }
}

}  // namespace rumor::compress
