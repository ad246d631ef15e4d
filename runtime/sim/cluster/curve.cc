#include "runtime/sim/cluster/curve.h"

#include <algorithm>

namespace rumor::sim {

namespace {
constexpr std::uint64_t tellings = 1000;  // of a run
constexpr std::uint64_t untold_max = 4096;
}

void Curve::add(CurvePoint point) {
  next_point_ = point.samples * points_wanted_ / samples_ + 1;
  points_.push_back(std::move(point));
}

bool Curve::tell(std::uint64_t samples, const Progress& progress) {
  if (points_.empty() || !progress) return true;
  if (samples * tellings < next_telling_ * samples_ && ++untold_ < untold_max) return true;
  untold_ = 0;
  next_telling_ = samples * tellings / samples_ + 1;
  CurvePoint now = points_.back();
  now.samples = samples;
  return progress(now, std::min(1.0, static_cast<double>(samples) / static_cast<double>(samples_)));
}

}  // namespace rumor::sim
