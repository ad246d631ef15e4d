#include "runtime/daemon/state/event_journal.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"

namespace rumor::daemon {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t events_max = 256;
constexpr double behind_seconds = 300;  // from one event of this kind to the next

ordered_json event(double at, const std::string& kind, EventLevel level, const std::string& text) {
  static constexpr const char* names[] = {"info", "warning", "error"};
  return {
      {"at", std::round(at * 1000) / 1000}, {"kind", kind}, {"level", names[static_cast<int>(level)]}, {"text", text}};
}

// Reasons of others need not be UTF-8.
std::string line_of(const ordered_json& event) {
  return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

Result<void> EventJournal::open(const std::string& path) {
  auto file = RotatingFile::open(path);
  if (!file) return file.error();
  file_ = std::make_unique<RotatingFile>(std::move(file).value());
  return {};
}

void EventJournal::write(const std::string& line) {
  if (listener_) listener_(line);
  if (!file_) return;
  const auto written = file_->append(line + "\n");
  trouble_ = written ? "" : written.error().text;
}

void EventJournal::pass(double unix_seconds, const std::string& text) {
  if (listener_) listener_(line_of(event(unix_seconds, "progress", EventLevel::info, text)));
}

void EventJournal::keep(std::string line) {
  write(line);
  json_.clear();
  lines_.push_back(std::move(line));
  if (lines_.size() > events_max) lines_.pop_front();
}

void EventJournal::add(double unix_seconds, const std::string& kind, EventLevel level, const std::string& text) {
  keep(line_of(event(unix_seconds, kind, level, text)));
}

void EventJournal::observe(double at, const NodeStatus& s) {
  if (s.phase != phase_) add(at, "phase", EventLevel::info, "phase: " + s.phase);
  phase_ = s.phase;
  tell_of_peers(at, s);
  tell_if_behind(at, s.limit);
  if (s.training.evaluations == evaluations_ || !s.training.loss) return;
  evaluations_ = s.training.evaluations;
  std::string text = str("loss ", fixed(*s.training.loss, 4));
  if (s.training.accuracy) text += str(", accuracy ", fixed(*s.training.accuracy * 100, 2), " %");
  ordered_json j = event(at, "evaluated", EventLevel::info, str(text, " after ", s.samples, " samples"));
  j["samples"] = s.samples;
  j["loss"] = *s.training.loss;
  if (s.training.accuracy) j["accuracy"] = *s.training.accuracy;
  // Not kept: the page shows them as a curve.
  write(line_of(j));
}

void EventJournal::tell_of_peers(double at, const NodeStatus& s) {
  std::vector<NodeId> live, joined, left;
  for (const PeerStaleness& peer : s.staleness) live.push_back(peer.node);
  std::set_difference(live.begin(), live.end(), live_.begin(), live_.end(), std::back_inserter(joined));
  std::set_difference(live_.begin(), live_.end(), live.begin(), live.end(), std::back_inserter(left));
  live_ = std::move(live);
  const auto tell = [&](const char* kind, const NodeId& node, const char* what) {
    ordered_json j = event(at, kind, EventLevel::info, str("peer ", node.brief(), what));
    j["node_id"] = node.hex();
    keep(line_of(j));
  };
  for (const NodeId& node : joined) tell("joined", node, " trains with us");
  for (const NodeId& node : left) {
    if (std::binary_search(s.lost.begin(), s.lost.end(), node))
      tell("lost", node, " trains with us no longer: its link ended without a goodbye");
    else
      tell("left", node, " trains with us no longer");
  }
}

void EventJournal::tell_if_behind(double at, const Limit& limit) {
  if (limit.kind != "link" && limit.kind != "slow_peer") return;
  if (behind_at_ && at - *behind_at_ < behind_seconds) return;
  behind_at_ = at;
  add(at, "behind", EventLevel::warning, limit.text);
}

const std::string& EventJournal::json() {
  if (!json_.empty()) return json_;
  json_ = "[";
  for (const std::string& line : lines_) json_ += (json_.size() > 1 ? ",\n" : "\n") + line;
  return json_ += "\n]\n";
}

}  // namespace rumor::daemon
