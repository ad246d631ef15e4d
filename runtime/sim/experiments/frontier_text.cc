// Renders a frontier as a table, as JSON and as a page with two charts.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/report/html_page.h"
#include "runtime/report/point_chart.h"
#include "runtime/report/table.h"
#include "runtime/sim/experiments/figure_text.h"
#include "runtime/sim/experiments/frontier.h"

namespace rumor::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* unit_of_bytes = "bytes / parameter / mini-batch";
constexpr const char* loss_label = "test loss (lower is better)";
constexpr double log_from = 3;  // an axis of losses is logarithmic where the greatest is so many times the least

std::string unit_bytes(const FrontierPoint& point) {
  return point.bytes > 0 ? short_number(point.bytes) : "nothing";
}

std::string sent_text(const MethodFigures& m) { return m.sent_bytes > 0 ? byte_text(m.sent_bytes) : "nothing"; }

std::string frontiers_of(const FrontierPoint& point) {
  if (point.cheapest && point.quickest) return "bytes, time";
  return point.cheapest ? "bytes" : point.quickest ? "time" : "-";
}

Table points_table(const Frontier& f) {
  Table table;
  table.words = 2;
  table.head = {"method", "setting", "rate", "loss", "accuracy", unit_of_bytes, "sent by a peer", "virtual time",
                "on the frontier of"};
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    const FrontierPoint& point = f.points[i];
    const MethodFigures& m = f.compared.methods[i];
    const std::string& name = f.methods[point.method].name;
    if (m.diverged() || !std::isfinite(m.loss)) {
      table.rows.push_back({name, point.text, "-", "diverged"});
      table.rows.back().resize(table.head.size(), "-");
      continue;
    }
    table.rows.push_back({name, point.text, short_number(m.runs.front().rate), fixed(m.loss, 4), percent(m.accuracy),
                          unit_bytes(point), sent_text(m), seconds(m.virtual_seconds), frontiers_of(point)});
  }
  return table;
}

std::string hint_of(const Frontier& f, std::size_t i) {
  const FrontierPoint& point = f.points[i];
  const MethodFigures& m = f.compared.methods[i];
  return str(f.methods[point.method].name, ", ", point.text, ": loss ", fixed(m.loss, 4),
             m.accuracy ? ", accuracy " + percent(m.accuracy) : "", ", ", unit_bytes(point),
             point.bytes > 0 ? str(" ", unit_of_bytes) : " sent", ", ", seconds(m.virtual_seconds));
}

// The losses that the charts show, whether they want a logarithmic axis.
bool wide(const std::vector<MarkGroup>& groups) {
  double least = HUGE_VAL, most = 0;
  const auto take = [&](double y) {
    if (!std::isfinite(y)) return;
    least = std::min(least, y);
    most = std::max(most, y);
  };
  for (const MarkGroup& group : groups) {
    for (const Mark& mark : group.marks) take(mark.y);
    for (const auto& point : group.line) take(point.second);
  }
  return least > 0 && most > log_from * least;
}

// Marks of every setting, one group a method, without lines.
template <typename X, typename Best>
std::vector<MarkGroup> marks_of(const Frontier& f, X x, Best best) {
  std::vector<MarkGroup> groups;
  for (const FrontierMethod& method : f.methods) groups.push_back({method.name, {}, {}});
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    const MethodFigures& m = f.compared.methods[i];
    if (m.diverged()) continue;
    const FrontierPoint& point = f.points[i];
    groups[point.method].marks.push_back({x(i), m.loss, point.brief, hint_of(f, i), best(i)});
  }
  return groups;
}

std::string chart_of_bytes(const Frontier& f) {
  auto groups = marks_of(f, [&](std::size_t i) { return f.points[i].bytes; },
                         [&](std::size_t i) { return f.points[i].cheapest; });
  for (MarkGroup& group : groups) {
    for (Mark& mark : group.marks) {
      if (mark.x > 0)
        group.line.emplace_back(mark.x, mark.y);
      else
        mark.label = group.name + ": sends nothing";
    }
    std::sort(group.line.begin(), group.line.end());
  }
  const std::string x_label = str("sent by a peer: ", unit_of_bytes);
  return point_chart({"Loss against bytes", x_label, loss_label, wide(groups), true}, groups,
                     "frontier: no other setting has both a lower loss and fewer bytes");
}

// The curve of the setting of `method` that ends with the least loss, without its beginning at time zero.
std::vector<std::pair<double, double>> best_curve(const Frontier& f, std::size_t method) {
  const MethodFigures* best = nullptr;
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    const MethodFigures& m = f.compared.methods[i];
    if (f.points[i].method != method || m.diverged()) continue;
    if (best == nullptr || m.loss < best->loss) best = &m;
  }
  std::vector<std::pair<double, double>> curve;
  if (best == nullptr) return curve;
  for (const CurvePoint& p : best->runs.front().curve)
    if (p.virtual_seconds > 0) curve.emplace_back(p.virtual_seconds, p.loss);
  return curve;
}

std::string chart_of_time(const Frontier& f) {
  auto groups = marks_of(f, [&](std::size_t i) { return f.compared.methods[i].virtual_seconds; },
                         [&](std::size_t i) { return f.points[i].quickest; });
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].line = best_curve(f, g);
  return point_chart({"Loss against virtual time", "virtual seconds", loss_label, wide(groups), true}, groups,
                     "frontier: no other setting has both a lower loss and less time");
}

constexpr const char* how_to_read =
    "Each mark is the end of a run: one method at one setting, at the learning rate that did best for it. Further down "
    "is a lower test loss, further left is fewer bytes or less time. Filled marks on the dashed line are the frontier: "
    "no other setting is at least as good in both and better in one. A hollow mark pays more than it has to. ";
constexpr const char* what_counts =
    "Bytes are everything that a peer sends, forwarding and messages included, divided by the parameters of the model "
    "and by the mini-batches that a peer trains on. In the first chart a line joins the settings of a method. In the "
    "second chart a line is the curve of the method's best setting, on the first seed. All settings see equally many "
    "samples, unless a method asks for more.";

// Whether the best rate is the lowest or the highest of several: then one beyond it may be better.
bool at_the_edge(const MethodFigures& m) {
  const auto rank = [](const Trial& a, const Trial& b) { return a.rate < b.rate; };
  const auto [low, high] = std::minmax_element(m.search.begin(), m.search.end(), rank);
  const double best = m.runs.front().rate;
  return !m.diverged() && low->rate < high->rate && (best == low->rate || best == high->rate);
}

// A sentence about settings whose learning rate was perhaps not found; empty when there are none.
std::string doubt_about_rates(const Frontier& f) {
  const auto edges = std::count_if(f.compared.methods.begin(), f.compared.methods.end(), at_the_edge);
  if (edges == 0) return {};
  return str(edges, " of ", f.points.size(), " settings did best at the lowest or the highest rate tried; more factors "
             "for --rates may improve them.");
}

// How each method was asked for, where its name does not say it.
std::string asked_list(const Frontier& f) {
  std::string out = "<p>In words of <code>--methods</code>:</p><ul>";
  for (const FrontierMethod& method : f.methods)
    out += str("<li>", html_escape(method.name), ": <code>", html_escape(method.asked), "</code></li>");
  return out + "</ul>";
}

}  // namespace

std::string to_table(const Frontier& f) {
  const std::string doubt = doubt_about_rates(f);
  return str("\n", conditions_of(f.compared), "\n\n", text_table(points_table(f)), "\n",
             "On the frontier: no other row has at most that loss and at most those bytes (or that time), and less of "
             "one.\n",
             doubt.empty() ? "" : doubt + "\n");
}

std::string to_json(const Frontier& f) {
  Json methods = Json::array(), points = Json::array();
  for (const FrontierMethod& method : f.methods) methods.push_back({{"method", method.asked}, {"name", method.name}});
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    const FrontierPoint& point = f.points[i];
    const MethodFigures& m = f.compared.methods[i];
    points.push_back({{"method", f.methods[point.method].asked},
                      {"setting", point.text},
                      {"run", m.label},
                      {"rate", m.runs.front().rate},
                      {"loss", m.loss},
                      {"accuracy", m.accuracy ? Json(*m.accuracy) : Json(nullptr)},
                      {"bytes_per_parameter", point.bytes},
                      {"sent_bytes_per_node", m.sent_bytes},
                      {"virtual_seconds", m.virtual_seconds},
                      {"on_frontier", point.cheapest},
                      {"on_time_frontier", point.quickest}});
  }
  Json j = Json::parse(to_json(f.compared));
  j["frontier"] = {{"methods", methods}, {"points", points}};
  return j.dump(2) + "\n";
}

std::string to_html(const Frontier& f) {
  const std::string title = "Frontier of " + html_escape(f.compared.run_name);
  std::string out = str("<h1>", title, ": loss against bytes and time</h1>");
  out += str("<p>", html_escape(conditions_of(f.compared)), ".</p><p>", how_to_read, what_counts, "</p>");
  out += str("<div class=\"charts\">", chart_of_bytes(f), chart_of_time(f), "</div>");
  out += str("<h2>Every setting</h2>", html_table(points_table(f)), "<p>", doubt_about_rates(f), "</p>");
  return html_page(title, out + asked_list(f));
}

}  // namespace rumor::sim
