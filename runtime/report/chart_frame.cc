#include "runtime/report/chart_frame.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/text.h"

namespace rumor::sim::chart {

namespace {

constexpr std::size_t colours = 8;  // html_page.cc has --c0 to --c7
constexpr std::size_t ticks_max = 8;

// 0.01 and 100 as they are, powers further away as 10 with an exponent.
std::string power_text(double value) {
  if (value > 0.0009 && value < 9999) return short_number(value);
  const double exponent = std::log10(value);
  if (std::abs(exponent - std::round(exponent)) > 1e-9) return short_number(value);
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "10";
  for (const char c : fixed(exponent, 0)) text += c == '-' ? "⁻" : digits[c - '0'];
  return text;
}

// Each factor times each power of ten within the axis, ascending.
std::vector<double> multiples(const Axis& axis, const std::vector<double>& factors) {
  std::vector<double> out;
  for (double exponent = std::floor(std::log10(axis.low)); exponent <= std::ceil(std::log10(axis.high)); ++exponent)
    for (const double factor : factors)
      if (const double v = factor * std::pow(10, exponent); v >= axis.low * 0.9999 && v <= axis.high * 1.0001)
        out.push_back(v);
  return out;
}

std::vector<double> linear_ticks(const Axis& axis) {
  std::vector<double> out;
  const double rough = (axis.high - axis.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = factor * power;
  for (double v = std::ceil(axis.low / step) * step; v <= axis.high + step * 1e-6; v += step)
    out.push_back(std::abs(v) < step * 1e-9 ? 0 : v);
  return out;
}

std::vector<double> log_ticks(const Axis& axis) {
  std::vector<double> out = multiples(axis, {1});
  if (out.size() < 3) out = multiples(axis, {1, 2, 5});
  if (out.size() < 3) out = linear_ticks(axis);
  while (out.size() > ticks_max) {
    std::vector<double> fewer;
    for (std::size_t i = 0; i < out.size(); i += 2) fewer.push_back(out[i]);
    out = std::move(fewer);
  }
  return out;
}

std::string grid(const Frame& frame) {
  std::string out;
  const double end = frame.height - Frame::bottom;
  for (const Tick& tick : ticks(frame.y)) {
    const std::string at = fixed(frame.y_of(tick.at), 1);
    out += str("<line x1=\"", Frame::left, "\" x2=\"", Frame::width - Frame::right, "\" y1=\"", at, "\" y2=\"", at,
               "\" class=\"grid\"/>");
    out += str("<text x=\"", Frame::left - 6, "\" y=\"", at, "\" dy=\"4\" text-anchor=\"end\">", tick.text, "</text>");
  }
  for (const Tick& tick : ticks(frame.x)) {
    const std::string at = fixed(frame.x_of(tick.at), 1);
    if (frame.x.log)
      out += str("<line x1=\"", at, "\" x2=\"", at, "\" y1=\"", Frame::top, "\" y2=\"", end, "\" class=\"grid\"/>");
    out += str("<text x=\"", at, "\" y=\"", end + 16, "\" text-anchor=\"middle\">", tick.text, "</text>");
  }
  return out;
}

}  // namespace

bool Axis::shows(double value) const { return std::isfinite(value) && (!log || value > 0); }

double Axis::place(double value) const {
  if (log) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

Axis fit(const std::vector<double>& values, bool log, bool from_zero) {
  Axis axis{INFINITY, -INFINITY, log};
  for (const double v : values) {
    if (!axis.shows(v)) continue;
    axis.low = std::min(axis.low, v);
    axis.high = std::max(axis.high, v);
  }
  if (!(axis.low <= axis.high)) return {log ? 0.1 : 0, 1, log};
  if (from_zero && !log) axis.low = std::min(axis.low, 0.0);
  if (axis.low == axis.high) axis.high = axis.low == 0 ? 1 : axis.low + std::abs(axis.low) * 0.1;
  return axis;
}

Axis widened(Axis axis, double share) {
  if (axis.log) {
    const double factor = std::pow(axis.high / axis.low, share);
    return {axis.low / factor, axis.high * factor, true};
  }
  const double more = (axis.high - axis.low) * share;
  return {axis.low - more, axis.high + more, false};
}

std::vector<Tick> ticks(const Axis& axis) {
  std::vector<Tick> out;
  for (const double v : axis.log ? log_ticks(axis) : linear_ticks(axis))
    out.push_back({v, axis.log ? power_text(v) : short_number(v)});
  return out;
}

std::string Frame::open(const ChartText& text) const {
  std::string out = str("<svg viewBox=\"0 0 ", width, " ", height, "\" role=\"img\" aria-label=\"",
                        html_escape(text.title), "\">");
  out += str("<text x=\"", left, "\" y=\"20\" class=\"title\">", html_escape(text.title), "</text>");
  out += str("<text x=\"", (left + width - right) / 2, "\" y=\"", height - 8, "\" text-anchor=\"middle\">",
             html_escape(text.x_label), "</text>");
  out += str("<text transform=\"translate(14 ", (top + height - bottom) / 2,
             ") rotate(-90)\" text-anchor=\"middle\">", html_escape(text.y_label), "</text>");
  return out + grid(*this);
}

std::string colour(std::size_t i) { return str("var(--c", i % colours, ")"); }

std::string legend(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += str("<span style=\"color:", colour(i), "\">&#9632;</span> ", html_escape(names[i]), " &nbsp; ");
  return out + "</p>";
}

}  // namespace rumor::sim::chart
