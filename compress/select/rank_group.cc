#include "compress/select/rank_group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {

void Margin::adapt(std::size_t candidates, std::size_t wanted, std::size_t room) {
  const auto k = static_cast<double>(wanted);
  const double more = static_cast<double>(candidates) - k;
  const double aim = std::min(caution_ * (0.15 * k + 3 * std::sqrt(k)), (static_cast<double>(room) - k) / 3);
  caution_ = more < 0 ? std::min(2 * caution_, 8.0) : std::max(0.98 * caution_, 1.0);
  if (more < 0)
    widen(2.0);
  else if (more < aim)
    widen(1.2);
  else if (more > 2 * aim)
    widen(0.85);
}

void Margin::widen(double factor) {
  share_ = 1 - std::clamp((1 - share_) * factor, 0.001, 0.6);
}

double Margin::wider_share() const {
  return std::max(1 - 4 * (1 - share_), 0.4);
}

std::uint32_t RankGroup::share_of_threshold(double share, std::uint32_t floor_bits) const {
  if (threshold == 0 || wanted == 0) return infinity_bits;
  const double cut = std::bit_cast<float>(threshold) * share;
  return std::max(magnitude_bits(static_cast<float>(cut)), floor_bits);
}

RankGroup::Collected RankGroup::collected(std::span<const Piece> pieces, std::uint32_t floor_bits) {
  candidates = count_candidates(pieces);
  if (wanted == 0) return Collected::enough;
  if (candidates > room() || std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.overflow; }))
    return Collected::too_many;
  return candidates >= wanted || cutoff <= floor_bits ? Collected::enough : Collected::too_few;
}

void RankGroup::want_extra() {
  extra = std::min(std::exchange(left_out, 0), size - wanted);
  wanted += extra;
}

void RankGroup::leave_out(std::uint32_t count) {
  left_out += count;
  const std::uint32_t surplus = std::min(count, extra);
  extra -= surplus;
  wanted -= surplus;
}

Result<void> RankGroup::set_step(float worth, int grid_bits) {
  const double units = std::round(std::ldexp(static_cast<double>(worth), grid_bits));
  if (units > std::numeric_limits<std::int32_t>::max())
    return Error{Errc::limit,
                 str("the change of the weights reached ", std::bit_cast<float>(threshold), ", beyond what the weight ",
                     "grid can hold; the model has diverged, try a smaller rate")};
  RUMOR_CHECK(units >= 1);
  step_units = static_cast<std::int32_t>(units);
  step = static_cast<float>(std::ldexp(units, -grid_bits));
  return {};
}

Error not_finite_at(const ParamLayout& layout, std::uint32_t position) {
  const TensorInfo& tensor = layout.tensor_at(position);
  return Error{Errc::limit, str("tensor ", tensor.name, " has a change that is not a finite number at position ",
                                position - tensor.offset, "; the model has diverged, try a smaller rate")};
}

std::size_t count_candidates(std::span<const Piece> pieces) {
  std::size_t count = 0;
  for (const Piece& piece : pieces) count += piece.count;
  return count;
}

void share_entries(std::span<RankGroup> groups, std::uint32_t entries, std::uint32_t params) {
  std::int64_t left = entries;
  for (RankGroup& group : groups) {
    group.owed += std::int64_t{entries} * group.size;  // in entries / params
    const std::int64_t whole = std::clamp<std::int64_t>(group.owed / params, 0, group.size);
    group.wanted = static_cast<std::uint32_t>(whole);
    left -= whole;
  }
  // The remaining entries go, one each, to the groups with the largest remainder. A surplus is taken from the groups
  // with the smallest.
  std::vector<std::uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto rest = [&](std::uint32_t g) { return groups[g].owed - std::int64_t{groups[g].wanted} * params; };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return rest(a) > rest(b); });
  while (left > 0)
    for (const std::uint32_t g : order) {
      const bool more = left > 0 && groups[g].wanted < groups[g].size;
      groups[g].wanted += more;
      left -= more;
    }
  while (left < 0)
    for (auto g = order.rbegin(); g != order.rend(); ++g) {
      const bool less = left < 0 && groups[*g].wanted > 0;
      groups[*g].wanted -= less;
      left += less;
    }
  for (RankGroup& group : groups) group.owed -= std::int64_t{group.wanted} * params;
}

}  // namespace rumor::compress
