#include "runtime/exchange/round_length.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/run/run_config.h"

namespace rumor {

RoundLength::RoundLength(std::uint32_t shortest, std::uint32_t longest)
    : shortest_(shortest), longest_(longest), length_(shortest) {
  RUMOR_CHECK(shortest >= 1 && shortest <= longest);
}

RoundLength RoundLength::following(double density) {
  constexpr std::uint32_t shortest = 4, longest = 16;
  const double room = density > 0 ? std::floor(density_max / density + 1e-9) : longest;
  const auto most = static_cast<std::uint32_t>(std::clamp(room, 1.0, static_cast<double>(longest)));
  return {std::min(shortest, most), most};
}

void RoundLength::published(double staleness) {
  if (++since_change_ < patience) return;
  const double wanted = std::max(staleness - 1, 0.0) * length_;
  if (wanted < length_ * 1.5 && wanted * 1.5 > length_) return;
  const auto least = static_cast<double>(std::max((length_ + 1) / 2, shortest_));
  const auto most = static_cast<double>(std::min(2 * length_, longest_));
  const auto next = static_cast<std::uint32_t>(std::lround(std::clamp(wanted, least, most)));
  if (next == length_) return;
  length_ = next;
  since_change_ = 0;
}

}  // namespace rumor
