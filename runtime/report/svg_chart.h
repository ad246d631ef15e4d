// SvgChart: line and bar charts as inline SVG, for self-contained reports. No scripts, no fonts, no files.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rumor::sim {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending x
};

struct ChartText {
  std::string title, x_label, y_label;
  bool y_log = false, x_log = false;  // logarithmic; points at or below zero are left out
};

// Lines over a common pair of axes, with ticks and a legend.
std::string line_chart(const ChartText& text, const std::vector<Series>& series);

// One horizontal bar group per name: values[k] of each series k.
struct Bar {
  std::string name;
  std::vector<double> values;
};
std::string bar_chart(const ChartText& text, const std::vector<std::string>& series,
                      const std::vector<Bar>& bars);

// 1234567 -> "1.23 M"; 0.00012 -> "0.00012".
std::string short_number(double value);

// "1.2 kB", "34.0 MB".
std::string byte_text(double bytes);

// & < > " made safe for HTML.
std::string html_escape(const std::string& text);

}  // namespace rumor::sim
