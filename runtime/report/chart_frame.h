// The frame of a chart: axes with ticks, grid, title and legend, as inline SVG. The charts draw into it.
//
// Thread: plain values and functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/report/svg_chart.h"

namespace rumor::sim::chart {

struct Axis {
  double low = 0, high = 1;
  bool log = false;

  // Whether `value` has a place on the axis: a logarithmic one has none for zero and less.
  bool shows(double value) const;
  // 0 at the low end, 1 at the high one. Requires: shows(value).
  double place(double value) const;
};

// Covers the values that it shows; with `from_zero`, a linear axis covers zero too. Always longer than nothing.
Axis fit(const std::vector<double>& values, bool log, bool from_zero);
// Longer by this share of its length at both ends, so that nothing lies on the edge.
Axis widened(Axis axis, double share);

struct Tick {
  double at = 0;
  std::string text;
};
// Round values that cover the axis: 1, 2 or 5 times a power of ten apart; on a logarithmic axis powers of ten, with
// their multiples by 2 and 5 where there are fewer than three of them.
std::vector<Tick> ticks(const Axis& axis);

// A chart's inside, in SVG units.
struct Frame {
  Axis x, y;
  double height = 320;
  static constexpr double width = 640, left = 70, right = 20, top = 36, bottom = 48;

  double x_of(double value) const { return left + x.place(value) * (width - left - right); }
  double y_of(double value) const { return height - bottom - y.place(value) * (height - top - bottom); }
  // <svg>, title, labels, grid and ticks; the caller draws and closes it.
  std::string open(const ChartText& text) const;
};

// Colour of series `i`, for CSS; html_page.h defines it for light and dark.
std::string colour(std::size_t i);
// Names with their colours; nothing for fewer than two.
std::string legend(const std::vector<std::string>& names);

}  // namespace rumor::sim::chart
