#include "runtime/daemon/state/run_history.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace rumor::daemon {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t points_max = 512;

void keep_every_second(std::vector<double>& points) {
  for (std::size_t i = 0; 2 * i < points.size(); ++i) points[i] = points[2 * i];
  points.resize(points.size() / 2);
}

}  // namespace

void RunHistory::observe(double seconds, const NodeStatus& s) {
  if (seconds < next_) return;
  json_.clear();
  seconds_.push_back(seconds);
  std::size_t at = 0;
  for (const FigureCurve& curve : curves_of(status_figures(s), &Figure::column)) {
    if (at == columns_.size()) columns_.push_back({std::string(curve.name), curve.whole, {}});
    // A loss means nothing before the first sample.
    const bool measured = curve.value && (curve.whole || s.samples > 0);
    columns_[at++].points.push_back(measured ? *curve.value : std::numeric_limits<double>::quiet_NaN());
  }
  if (seconds_.size() == points_max) {
    keep_every_second(seconds_);
    for (Column& column : columns_) keep_every_second(column.points);
    spacing_ *= 2;
  }
  next_ = seconds_.back() + spacing_;
}

const std::string& RunHistory::json() {
  if (!json_.empty()) return json_;
  ordered_json j;
  j["spacing_s"] = spacing_;
  for (const double at : seconds_) j["seconds"].push_back(std::round(at * 1000) / 1000);
  for (const Column& column : columns_)
    for (const double value : column.points)
      j[column.name].push_back(std::isnan(value) ? ordered_json(nullptr)
                               : column.whole    ? ordered_json(static_cast<std::uint64_t>(value))
                                                 : ordered_json(value));
  return json_ = j.dump() + "\n";
}

}  // namespace rumor::daemon
