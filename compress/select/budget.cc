#include "compress/select/budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// Planned beyond the budget, so that cutting decides and not the guess; more while bits are not known.
constexpr double headroom = 1.15, headroom_first = 3;
constexpr double share_of_new = 0.25;    // weight of the last update in the means of bits and intervals
constexpr double saved_updates_max = 4;  // of bytes per second
constexpr double density_max = 0.2;
constexpr double head_bits_guess = 12 * 8;  // of a payload, before one has been seen

// Returns how many of `entries`, whose payload takes `bytes`, to try next: 1 to entries - 1. The number falls in a few
// small steps: entries cost more as they get rarer, so too few are never tried first. Requires: entries > 1,
// bytes > bytes_max.
std::uint32_t fitting_entries(std::uint64_t entries, std::uint64_t bytes_max, std::uint64_t bytes) {
  const auto all = static_cast<double>(entries);
  const double fitting = all * static_cast<double>(bytes_max) / static_cast<double>(bytes);
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, all - 1));
}

}  // namespace

ByteBudget::ByteBudget(std::uint32_t params, Limits limits) : params_(params), limits_(limits) {
  RUMOR_CHECK(params >= 1);
  RUMOR_CHECK((limits.bytes_per_update > 0) != (limits.bytes_per_second > 0));
}

// Independent positions take log2(params / entries) + 1.44 bits and a sign.
double ByteBudget::bits_per_entry(double entries) const {
  if (bits_ > 0) return std::max(1.0, bits_ + std::log2(at_ / entries));
  return std::log2(params_ / entries) + 2.5 + head_bits_guess / entries;
}

std::uint32_t ByteBudget::plan(double seconds) {
  if (limits_.bytes_per_update > 0) {
    saved_ = limits_.bytes_per_update;
  } else {
    if (seconds > 0)
      seconds_mean_ =
          seconds_mean_ == 0 ? seconds : seconds_mean_ + share_of_new * (seconds - seconds_mean_);
    saved_ = std::min(saved_ + limits_.bytes_per_second * std::max(seconds, 0.0),
                      limits_.bytes_per_second * saved_updates_max * seconds_mean_);
  }
  const double most = std::max(1.0, std::floor(params_ * density_max));
  double entries = at_ > 0 ? at_ : std::max(1.0, params_ / 1000);
  for (int round = 0; round < 8; ++round)  // bits depend on entries, weakly
    entries = std::clamp(8 * saved_ / bits_per_entry(entries), 1.0, most);
  entries = std::min(entries * (bits_ > 0 ? headroom : headroom_first), most);
  return static_cast<std::uint32_t>(std::max(entries, 1.0));
}

std::uint64_t ByteBudget::bytes_max() const {
  return static_cast<std::uint64_t>(std::max(saved_, 0.0));
}

void ByteBudget::sent(std::uint64_t entries, std::uint64_t payload_bytes) {
  saved_ -= static_cast<double>(payload_bytes);  // an entry that costs more than there was is a debt
  if (entries == 0) return;
  const auto count = static_cast<double>(entries);
  const double bits = 8 * static_cast<double>(payload_bytes) / count;
  const bool alike = bits_ > 0 && count > at_ / 2 && count < at_ * 2;
  bits_ = alike ? bits_ + std::log2(at_ / count) + share_of_new * (bits - bits_ - std::log2(at_ / count)) : bits;
  at_ = count;
}

CompressorEntries::CompressorEntries(Compressor& compressor, const ParamLayout& layout, SparseUpdate& update,
                                     CodecOptions options, EntryRules rules)
    : compressor_(compressor), layout_(layout), update_(update), options_(options), rules_(std::move(rules)) {
  keep_in_range();
}

Result<void> CompressorEntries::shrink(std::uint32_t entries) {
  compressor_.shrink(entries, update_);
  keep_in_range();
  return {};
}

// Those that take the place of what is left out may move a weight too far as well: until there are none.
void CompressorEntries::keep_in_range() {
  share();
  while (rules_.guard) {
    const std::vector<std::uint32_t> beyond = rules_.guard->beyond(layout_, update_);
    if (beyond.empty()) return;
    left_out_.insert(left_out_.end(), beyond.begin(), beyond.end());
    compressor_.leave_out(beyond, update_);
    share();
  }
}

void CompressorEntries::share() {
  if (rules_.peers == 1) return;
  const auto part_of = [&](std::int32_t step) {
    const std::int64_t part = std::max<std::int64_t>(1, (step + rules_.peers / 2) / rules_.peers);
    return step == 0 ? 0 : static_cast<std::int32_t>(part);
  };
  update_.step = part_of(update_.step);
  for (std::int32_t& step : update_.tensor_step) step = part_of(step);
  normalize_steps(update_);
}

Result<Bytes> encode_within(ChosenEntries& chosen, std::uint64_t bytes_max) {
  Result<Bytes> payload = chosen.encode();
  while (payload && payload->size() > bytes_max && chosen.count() > 1) {
    const std::uint32_t fewer = fitting_entries(chosen.count(), bytes_max, payload->size());
    if (auto cut = chosen.shrink(fewer); !cut) return cut.error();
    payload = chosen.encode();
  }
  return payload;
}

Bytes encode_within(Compressor& compressor, const ParamLayout& layout, SparseUpdate& update,
                    std::uint64_t bytes_max, const CodecOptions& options) {
  CompressorEntries chosen(compressor, layout, update, options);
  return encode_within(chosen, bytes_max).value();
}

}  // namespace rumor::compress
