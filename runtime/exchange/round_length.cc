#include "runtime/exchange/round_length.h"

#include <algorithm>
#include <cmath>

namespace rumor {

void RoundLength::published(double staleness) {
  if (fixed_ > 0 || ++since_change_ < patience) return;
  const double wanted = staleness * length_;
  if (wanted < length_ * 1.5 && wanted * 1.5 > length_) return;
  const double least = std::max(std::ceil(length_ / 2.0), double{shortest});
  const double most = std::min(2.0 * length_, double{longest});
  const auto next = static_cast<std::uint32_t>(std::lround(std::clamp(wanted, least, most)));
  if (next == length_) return;
  length_ = next;
  since_change_ = 0;
}

}  // namespace rumor
