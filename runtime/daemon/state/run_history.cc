#include "runtime/daemon/state/run_history.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace rumor::daemon {

using nlohmann::ordered_json;

namespace {
constexpr std::size_t points_max = 512;
}

void RunHistory::observe(double seconds, const NodeStatus& s) {
  if (seconds < next_) return;
  Point point{.seconds = seconds,
              .samples = s.samples,
              .sent = s.traffic.sent_bytes,
              .received = s.traffic.received_bytes,
              .dense = s.dense_bytes(),
              .live = s.live_peers,
              .train_loss = s.training.train_loss,
              .loss = {},
              .accuracy = {}};
  if (s.training.loss) point.loss = static_cast<float>(*s.training.loss);
  if (s.training.accuracy) point.accuracy = static_cast<float>(*s.training.accuracy);
  json_.clear();
  points_.push_back(point);
  if (points_.size() == points_max) {
    for (std::size_t i = 0; 2 * i < points_max; ++i) points_[i] = points_[2 * i];
    points_.resize(points_max / 2);
    spacing_ *= 2;
  }
  next_ = points_.back().seconds + spacing_;
}

const std::string& RunHistory::json() {
  if (!json_.empty()) return json_;
  ordered_json j;
  j["spacing_s"] = spacing_;
  const auto column = [&](const char* name, auto value_of) {
    ordered_json& list = j[name] = ordered_json::array();
    for (const Point& point : points_) list.push_back(value_of(point));
  };
  const auto measured = [](const std::optional<float>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  column("seconds", [](const Point& p) { return std::round(p.seconds * 1000) / 1000; });
  column("samples", [](const Point& p) { return p.samples; });
  column("loss", [&](const Point& p) { return measured(p.loss); });
  column("train_loss",
         [](const Point& p) { return p.samples > 0 ? ordered_json(p.train_loss) : ordered_json(nullptr); });
  column("accuracy", [&](const Point& p) { return measured(p.accuracy); });
  column("sent_bytes", [](const Point& p) { return p.sent; });
  column("received_bytes", [](const Point& p) { return p.received; });
  column("dense_bytes", [](const Point& p) { return p.dense; });
  column("live_peers", [](const Point& p) { return p.live; });
  return json_ = j.dump() + "\n";
}

}  // namespace rumor::daemon
