// PrometheusText: figures in the text format that Prometheus scrapes (exposition format 0.0.4).
//
// Names follow its conventions: rumor_ first, base units (bytes, seconds, ratio), _total on counters.
//
// Thread: one owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rumor::daemon {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class PrometheusText {
 public:
  // A value that may go up and down.
  void gauge(std::string_view name, std::string_view help, double value, const MetricLabels& labels = {});
  // A value that only grows, from the start of the process. Requires: `name` ends in _total.
  void counter(std::string_view name, std::string_view help, double value, const MetricLabels& labels = {});

  // One sample a line, each name's HELP and TYPE before its first. Samples of one name must be added in a
  // row.
  const std::string& text() const { return text_; }

 private:
  void add(std::string_view kind, std::string_view name, std::string_view help, double value,
           const MetricLabels& labels);

  std::string text_;
  std::string last_name_;
};

}  // namespace rumor::daemon
