// Curve: the points of a run, when the next is due, and reports of progress.
//
// Thread: one owner. Memory: its points.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

// Where a run is, for a progress line: the newest point of the curve, with the samples seen by now, and the share of
// the run in [0, 1]. Return false to stop early.
using Progress = std::function<bool(const CurvePoint& point, double fraction)>;

class Curve {
 public:
  // The run has so many samples, and `points` evaluations, the first at its beginning.
  Curve(std::uint64_t samples, std::uint32_t points) : samples_(samples), points_wanted_(points) {}

  bool due(std::uint64_t samples) const { return samples * points_wanted_ >= next_point_ * samples_; }
  void add(CurvePoint point);
  // Whether the last point is from this time or later.
  bool reaches(double virtual_seconds) const {
    return !points_.empty() && points_.back().virtual_seconds >= virtual_seconds;
  }
  // Calls `progress` after each thousandth of the run, and now and then while the run makes no progress, so that it can
  // be stopped then too. Not before the first point, nor after take(). False: `progress` says stop.
  bool tell(std::uint64_t samples, const Progress& progress);

  // The run is over.
  std::vector<CurvePoint> take() { return std::exchange(points_, {}); }

 private:
  std::uint64_t samples_;
  std::uint32_t points_wanted_;
  std::uint64_t next_point_ = 0, next_telling_ = 0;  // by number
  std::uint64_t untold_ = 0;  // calls of tell() since
  std::vector<CurvePoint> points_;
};

}  // namespace rumor::sim
