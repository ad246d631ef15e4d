#include "runtime/report/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/text.h"
#include "runtime/report/chart_frame.h"

namespace rumor::sim {

std::string short_number(double value) {
  const double size = std::abs(value);
  char buffer[40];
  if (size >= 1e9)
    std::snprintf(buffer, sizeof buffer, "%.3g G", value / 1e9);
  else if (size >= 1e6)
    std::snprintf(buffer, sizeof buffer, "%.3g M", value / 1e6);
  else if (size >= 9999.5)
    std::snprintf(buffer, sizeof buffer, "%.3g k", value / 1e3);
  else if (size >= 1e3)
    std::snprintf(buffer, sizeof buffer, "%.4g", value);
  else
    std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

std::string byte_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fixed(bytes, unit == 0 || bytes >= 100 ? 0 : 1) + " " + units[unit];
}

std::string html_escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string line_chart(const ChartText& text, const std::vector<Series>& series) {
  std::vector<double> xs, ys;
  for (const Series& s : series)
    for (const auto& [x, y] : s.points) {
      xs.push_back(x);
      ys.push_back(y);
    }
  const chart::Frame frame{chart::fit(xs, text.x_log, true), chart::fit(ys, text.y_log, false)};
  std::string out = "<figure>" + frame.open(text);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < series.size(); ++i) {
    names.push_back(series[i].name);
    std::string points;
    for (const auto& [x, y] : series[i].points)
      if (frame.x.shows(x) && frame.y.shows(y)) points += fixed(frame.x_of(x), 1) + "," + fixed(frame.y_of(y), 1) + " ";
    out += str("<polyline fill=\"none\" stroke-width=\"1.8\" style=\"stroke:", chart::colour(i), "\" points=\"", points,
               "\"/>");
  }
  return out + "</svg>" + chart::legend(names) + "</figure>";
}

std::string bar_chart(const ChartText& text, const std::vector<std::string>& series,
                      const std::vector<Bar>& bars) {
  constexpr double width = chart::Frame::width;
  double most = 0;
  std::size_t longest = 0;
  for (const Bar& bar : bars) {
    longest = std::max(longest, bar.name.size());
    for (double v : bar.values) most = std::max(most, v);
  }
  const double start = std::clamp(6.2 * static_cast<double>(longest) + 12, chart::Frame::left, 0.45 * width);
  const double row = 10.0 * static_cast<double>(series.size()) + 8;
  const double tall = 34 + row * static_cast<double>(bars.size());
  std::string out = str("<figure><svg viewBox=\"0 0 ", width, " ", tall, "\" role=\"img\" aria-label=\"",
                        html_escape(text.title), "\">");
  out += str("<text x=\"12\" y=\"20\" class=\"title\">", html_escape(text.title), "</text>");
  for (std::size_t b = 0; b < bars.size(); ++b) {
    const double y = 32 + row * static_cast<double>(b);
    out += str("<text x=\"", start - 6, "\" y=\"", y + row / 2, "\" text-anchor=\"end\">",
               html_escape(bars[b].name), "</text>");
    for (std::size_t k = 0; k < bars[b].values.size(); ++k) {
      const double length = most > 0 ? bars[b].values[k] / most * (width - start - chart::Frame::right - 90) : 0;
      const double at = y + 10.0 * static_cast<double>(k);
      out += str("<rect x=\"", start, "\" y=\"", at, "\" width=\"", fixed(length, 1),
                 "\" height=\"8\" style=\"fill:", chart::colour(k), "\"/>");
      out += str("<text x=\"", fixed(start + length + 4, 1), "\" y=\"", at + 8, "\">",
                 short_number(bars[b].values[k]), "</text>");
    }
  }
  return out + "</svg>" + chart::legend(series) + "</figure>";
}

}  // namespace rumor::sim
