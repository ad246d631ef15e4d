#include "runtime/exchange/link_fit.h"

#include <algorithm>
#include <cmath>

namespace rumor {

void LinkFit::stepped(double batches, Duration took) {
  constexpr double weight = 1.0 / 8;
  if (batches <= 0) return;
  const double seconds = to_seconds(took) / batches;
  seconds_ = seconds_ == 0 ? seconds : seconds_ + (seconds - seconds_) * weight;
}

std::uint32_t LinkFit::batches(std::uint32_t wanted, Duration interval) const {
  if (seconds_ <= 0) return wanted;
  const double fitting = std::ceil(to_seconds(interval) / seconds_ - 0.01);
  const double most = static_cast<double>(wanted) * stretch_max;
  return std::max(wanted, static_cast<std::uint32_t>(std::min(fitting, most)));
}

Duration LinkFit::time_of(std::uint32_t batches) const { return from_seconds(seconds_ * batches); }

}  // namespace rumor
