#include "runtime/daemon/status/prometheus_text.h"

#include <cmath>
#include <cstdio>

#include "runtime/base/check.h"

namespace rumor::daemon {
namespace {

// Inside a HELP line `\` and line ends are escaped; inside a label's quotes `"` too.
std::string escaped(std::string_view text, bool in_quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (in_quotes && c == '"')) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  // Counts up to 2^53 without an exponent, everything else to the last bit.
  const bool whole = value == std::floor(value) && std::fabs(value) <= 9007199254740992.0;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.17g", value);
  return text;
}

}  // namespace

void PrometheusText::gauge(std::string_view name, std::string_view help, double value,
                           const MetricLabels& labels) {
  add("gauge", name, help, value, labels);
}

void PrometheusText::counter(std::string_view name, std::string_view help, double value,
                             const MetricLabels& labels) {
  RUMOR_CHECK(name.ends_with("_total"));
  add("counter", name, help, value, labels);
}

void PrometheusText::add(std::string_view kind, std::string_view name, std::string_view help, double value,
                         const MetricLabels& labels) {
  if (name != last_name_) {
    last_name_ = name;
    text_.append("# HELP ").append(name).append(" ").append(escaped(help, false)).append("\n");
    text_.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
  }
  text_.append(name);
  char separator = '{';
  for (const auto& [label, content] : labels) {
    text_.push_back(separator);
    text_.append(label).append("=\"").append(escaped(content, true)).append("\"");
    separator = ',';
  }
  if (!labels.empty()) text_.push_back('}');
  text_.append(" ").append(number(value)).append("\n");
}

}  // namespace rumor::daemon
