#include "runtime/report/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr double width = 640, height = 320, left = 70, right = 20, top = 36, bottom = 48;
constexpr const char* colours[] = {"#1f6feb", "#d1242f", "#1a7f37", "#9a6700",
                                   "#8250df", "#bf3989", "#0a7ea4", "#57606a"};

const char* colour(std::size_t i) {
  return colours[i % std::size(colours)];
}

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double place(double v) const {
    if (log) return (std::log10(v) - std::log10(low)) / (std::log10(high) - std::log10(low));
    return (v - low) / (high - low);
  }
};

// Round tick values covering the axis: 1, 2 or 5 times a power of ten apart; powers of ten on a log axis.
std::vector<double> ticks(const Axis& axis) {
  std::vector<double> out;
  if (axis.log) {
    for (double v = std::pow(10, std::ceil(std::log10(axis.low))); v <= axis.high * 1.0001; v *= 10)
      out.push_back(v);
    if (out.size() < 2) out = {axis.low, axis.high};
    return out;
  }
  const double rough = (axis.high - axis.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = factor * power;
  for (double v = std::ceil(axis.low / step) * step; v <= axis.high + step * 1e-6; v += step)
    out.push_back(std::abs(v) < step * 1e-9 ? 0 : v);
  return out;
}

Axis fit(const std::vector<Series>& series, bool use_y, bool log) {
  Axis axis{INFINITY, -INFINITY, log};
  for (const Series& s : series)
    for (const auto& [x, y] : s.points) {
      const double v = use_y ? y : x;
      if (!std::isfinite(v) || (log && v <= 0)) continue;
      axis.low = std::min(axis.low, v);
      axis.high = std::max(axis.high, v);
    }
  if (!(axis.low <= axis.high)) return {log ? 0.1 : 0, 1, log};
  if (!use_y) axis.low = std::min(axis.low, 0.0);
  if (axis.low == axis.high) axis.high = axis.low == 0 ? 1 : axis.low + std::abs(axis.low) * 0.1;
  return axis;
}

std::string frame(const ChartText& text) {
  std::string out = str("<svg viewBox=\"0 0 ", width, " ", height, "\" role=\"img\" aria-label=\"",
                        html_escape(text.title), "\">");
  out += str("<text x=\"", left, "\" y=\"20\" class=\"title\">", html_escape(text.title), "</text>");
  out += str("<text x=\"", (left + width - right) / 2, "\" y=\"", height - 8, "\" text-anchor=\"middle\">",
             html_escape(text.x_label), "</text>");
  out += str("<text transform=\"translate(14 ", (top + height - bottom) / 2,
             ") rotate(-90)\" text-anchor=\"middle\">", html_escape(text.y_label), "</text>");
  return out;
}

double x_of(const Axis& axis, double v) {
  return left + axis.place(v) * (width - left - right);
}
double y_of(const Axis& axis, double v) {
  return height - bottom - axis.place(v) * (height - top - bottom);
}

std::string grid(const Axis& x, const Axis& y) {
  std::string out;
  for (double v : ticks(y)) {
    const std::string at = fixed(y_of(y, v), 1);
    out += str("<line x1=\"", left, "\" x2=\"", width - right, "\" y1=\"", at, "\" y2=\"", at,
               "\" class=\"grid\"/>");
    out += str("<text x=\"", left - 6, "\" y=\"", at, "\" dy=\"4\" text-anchor=\"end\">", short_number(v),
               "</text>");
  }
  for (double v : ticks(x))
    out += str("<text x=\"", fixed(x_of(x, v), 1), "\" y=\"", height - bottom + 16,
               "\" text-anchor=\"middle\">", short_number(v), "</text>");
  return out;
}

std::string legend(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += str("<span style=\"color:", colour(i), "\">&#9632;</span> ", html_escape(names[i]), " &nbsp; ");
  return out + "</p>";
}

}  // namespace

std::string short_number(double value) {
  const double size = std::abs(value);
  char buffer[40];
  if (size >= 1e9)
    std::snprintf(buffer, sizeof buffer, "%.3g G", value / 1e9);
  else if (size >= 1e6)
    std::snprintf(buffer, sizeof buffer, "%.3g M", value / 1e6);
  else if (size >= 1e4)
    std::snprintf(buffer, sizeof buffer, "%.3g k", value / 1e3);
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
  const Axis x = fit(series, false, false), y = fit(series, true, text.y_log);
  std::string out = "<figure>" + frame(text) + grid(x, y);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < series.size(); ++i) {
    names.push_back(series[i].name);
    std::string points;
    for (const auto& [px, py] : series[i].points)
      if (std::isfinite(py) && (!text.y_log || py > 0))
        points += fixed(x_of(x, px), 1) + "," + fixed(y_of(y, py), 1) + " ";
    out += str("<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\"", colour(i), "\" points=\"", points,
               "\"/>");
  }
  return out + "</svg>" + legend(names) + "</figure>";
}

std::string bar_chart(const ChartText& text, const std::vector<std::string>& series,
                      const std::vector<Bar>& bars) {
  double most = 0;
  std::size_t longest = 0;
  for (const Bar& bar : bars) {
    longest = std::max(longest, bar.name.size());
    for (double v : bar.values) most = std::max(most, v);
  }
  const double start = std::clamp(6.2 * static_cast<double>(longest) + 12, left, 0.45 * width);
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
      const double length = most > 0 ? bars[b].values[k] / most * (width - start - right - 90) : 0;
      const double at = y + 10.0 * static_cast<double>(k);
      out += str("<rect x=\"", start, "\" y=\"", at, "\" width=\"", fixed(length, 1),
                 "\" height=\"8\" fill=\"", colour(k), "\"/>");
      out += str("<text x=\"", fixed(start + length + 4, 1), "\" y=\"", at + 8, "\">",
                 short_number(bars[b].values[k]), "</text>");
    }
  }
  return out + "</svg>" + legend(series) + "</figure>";
}

}  // namespace rumor::sim
