#include "runtime/report/point_chart.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/text.h"
#include "runtime/report/chart_frame.h"

namespace rumor::sim {

namespace {

constexpr double marks_height = 400, mark_size = 4.5;
constexpr double beyond = 0.07;  // of an axis, beyond its first and its last mark

// Each encloses an area, so that it can be filled or hollow: SVG path data around (x, y).
std::string shape(std::size_t i, double x, double y) {
  const double r = mark_size;
  const auto corners = [&](std::initializer_list<std::pair<double, double>> list) {
    std::string out;
    for (const auto& [dx, dy] : list)
      out += str(out.empty() ? "M" : "L", fixed(x + dx * r, 1), " ", fixed(y + dy * r, 1));
    return out + "Z";
  };
  switch ((i + i / 8) % 8) {  // eight colours: each group has a pair of its own
    case 0:
      return str("M", fixed(x - r, 1), " ", fixed(y, 1), "a", r, " ", r, " 0 1 0 ", 2 * r, " 0a", r, " ", r, " 0 1 0 ",
                 -2 * r, " 0Z");
    case 1:
      return corners({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
    case 2:
      return corners({{0, -1.2}, {1.15, 0.9}, {-1.15, 0.9}});
    case 3:
      return corners({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
    case 4:
      return corners({{0, 1.2}, {1.15, -0.9}, {-1.15, -0.9}});
    case 5:
      return corners({{-1.2, 0}, {-0.6, -1}, {0.6, -1}, {1.2, 0}, {0.6, 1}, {-0.6, 1}});
    case 6:
      return corners({{-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4},
                      {0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4}, {-1.2, 0.4}, {-1.2, -0.4}, {-0.4, -0.4}});
    default:
      return corners({{1.2, 0}, {-0.9, 1.15}, {-0.9, -1.15}});
  }
}

std::string drawn(std::size_t group, double x, double y, bool filled, const std::string& hint) {
  const std::string colour = chart::colour(group);
  return str("<path d=\"", shape(group, x, y), "\" style=\"stroke:", colour, ";stroke-width:1.6;fill:",
             filled ? colour : "var(--page)", "\">", hint.empty() ? "" : "<title>" + html_escape(hint) + "</title>",
             "</path>");
}

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

Box around(double x, double y, double across, double up) { return {x - across, y - up, x + across, y + up}; }

using Points = std::vector<std::pair<double, double>>;

// Where labels may still go.
class Labels {
 public:
  void take(const Box& box) { taken_.push_back(box); }
  // Labels keep off this line where they can.
  void avoid(const Points& line) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      const auto [x, y] = line[i - 1];
      const double across = line[i].first - x, up = line[i].second - y;
      const double dots = std::ceil(std::hypot(across, up) / 4);
      for (double dot = 0; dot < dots; ++dot) lines_.emplace_back(x + across * dot / dots, y + up * dot / dots);
    }
  }

  // The text centred at the first of these points where it meets no line, else where it meets no label and no mark;
  // nothing when there is none.
  std::string place(const std::string& text, const Points& points) {
    for (const bool on_lines : {false, true})
      for (const auto& [x, y] : points) {
        const Box box = around(x, y, half_width(text), 6);
        if (!is_free(box) || (!on_lines && crosses(box))) continue;
        take(box);
        return str("<text class=\"mark\" x=\"", fixed(x, 1), "\" y=\"", fixed(y + 4, 1), "\" text-anchor=\"middle\">",
                   html_escape(text), "</text>");
      }
    return {};
  }

  static double half_width(const std::string& text) { return 3.1 * static_cast<double>(text.size()); }

 private:
  bool is_free(const Box& box) const {
    const bool inside = box.left >= chart::Frame::left && box.right <= chart::Frame::width - 2 &&
                        box.top >= chart::Frame::top - 8 && box.bottom <= marks_height - chart::Frame::bottom;
    return inside && std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) { return other.meets(box); });
  }
  bool crosses(const Box& box) const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& dot) {
      return box.meets(around(dot.first, dot.second, 1, 1));
    });
  }

  std::vector<Box> taken_;
  Points lines_;  // dots on them
};

// Right, left, above, below, then the corners.
Points beside(const std::string& label, double x, double y) {
  const double across = Labels::half_width(label) + mark_size + 4, up = mark_size + 9;
  return {{x + across, y},      {x - across, y},      {x, y - up},          {x, y + up},
          {x + across, y - 10}, {x + across, y + 10}, {x - across, y - 10}, {x - across, y + 10}};
}

struct Placed {
  std::size_t group;
  double x, y;
  const Mark* mark;
};

// The marks that have a place, those on the dashed line first.
std::vector<Placed> places(const chart::Frame& frame, const std::vector<MarkGroup>& groups) {
  std::vector<Placed> out;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const Mark& mark : groups[g].marks)
      if (frame.x.shows(mark.x) && frame.y.shows(mark.y))
        out.push_back({g, frame.x_of(mark.x), frame.y_of(mark.y), &mark});
  std::stable_partition(out.begin(), out.end(), [](const Placed& p) { return p.mark->best; });
  return out;
}

// From the cheapest of the best on: level until the next is affordable, then down to it.
Points steps_of_best(const std::vector<Placed>& marks) {
  Points best, steps;
  for (const Placed& p : marks)
    if (p.mark->best) best.emplace_back(p.x, p.y);
  std::sort(best.begin(), best.end());
  for (const auto& [x, y] : best) {
    if (!steps.empty()) steps.emplace_back(x, steps.back().second);
    steps.emplace_back(x, y);
  }
  if (!steps.empty()) steps.emplace_back(chart::Frame::width - chart::Frame::right, steps.back().second);
  return steps;
}

Points line_of(const chart::Frame& frame, const MarkGroup& group) {
  Points line;
  for (const auto& [x, y] : group.line)
    if (frame.x.shows(x) && frame.y.shows(y)) line.emplace_back(frame.x_of(x), frame.y_of(y));
  return line;
}

std::string polyline(const Points& line, const std::string& attributes, Labels& labels) {
  if (line.size() < 2) return {};
  labels.avoid(line);
  std::string points;
  for (const auto& [x, y] : line) points += fixed(x, 1) + "," + fixed(y, 1) + " ";
  return str("<polyline fill=\"none\" ", attributes, " points=\"", points, "\"/>");
}

// A mark that has a result and no place on the axis of costs.
std::string level_line(const chart::Frame& frame, const Mark& mark, std::size_t g, Labels& labels) {
  const double y = frame.y_of(mark.y), start = chart::Frame::left, end = chart::Frame::width - chart::Frame::right;
  const double half = Labels::half_width(mark.label);
  labels.avoid({{start, y}, {end, y}});
  Points points;
  for (const double x : {end - half, start + half + 4, (start + end) / 2})
    for (const double up : {-9.0, 9.0}) points.emplace_back(x, y + up);
  return str("<line x1=\"", start, "\" x2=\"", end, "\" y1=\"", fixed(y, 1), "\" y2=\"", fixed(y, 1),
             "\" stroke-dasharray=\"2 3\" style=\"stroke:", chart::colour(g), "\"><title>", html_escape(mark.hint),
             "</title></line>", labels.place(mark.label, points));
}

std::string marks_legend(const std::vector<MarkGroup>& groups, const std::string& best_means) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t g = 0; g < groups.size(); ++g)
    out += str("<span><svg viewBox=\"0 0 14 14\">", drawn(g, 7, 7, true, {}), "</svg> ", html_escape(groups[g].name),
               "</span> &nbsp; ");
  return str(out, "<span><svg viewBox=\"0 0 14 14\"><path class=\"best\" d=\"M0 7H14\"/></svg> ",
             html_escape(best_means), "</span></p>");
}

chart::Frame frame_around(const ChartText& text, const std::vector<MarkGroup>& groups) {
  std::vector<double> xs, ys;
  const auto take = [&](double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    xs.push_back(x);
    ys.push_back(y);
  };
  for (const MarkGroup& group : groups) {
    for (const Mark& mark : group.marks) take(mark.x, mark.y);
    for (const auto& [x, y] : group.line)
      if (!text.x_log || x > 0) take(x, y);
  }
  const auto axis = [](const std::vector<double>& values, bool log) {
    return chart::widened(chart::fit(values, log, false), beyond);
  };
  return {axis(xs, text.x_log), axis(ys, text.y_log), marks_height};
}

}  // namespace

std::string point_chart(const ChartText& text, const std::vector<MarkGroup>& groups, const std::string& best_means) {
  const chart::Frame frame = frame_around(text, groups);
  const std::vector<Placed> marks = places(frame, groups);
  std::string out = "<figure>" + frame.open(text);
  Labels labels;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string thin = str("stroke-width=\"1.4\" style=\"stroke:", chart::colour(g), "\"");
    out += polyline(line_of(frame, groups[g]), thin, labels);
  }
  out += polyline(steps_of_best(marks), "class=\"best\"", labels);
  for (const Placed& p : marks) labels.take(around(p.x, p.y, mark_size + 2, mark_size + 2));
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const Mark& mark : groups[g].marks)
      if (!frame.x.shows(mark.x) && std::isfinite(mark.x) && frame.y.shows(mark.y))
        out += level_line(frame, mark, g, labels);
  for (auto p = marks.rbegin(); p != marks.rend(); ++p)  // the best on top
    out += drawn(p->group, p->x, p->y, p->mark->best, p->mark->hint);
  for (const Placed& p : marks)
    if (!p.mark->label.empty()) out += labels.place(p.mark->label, beside(p.mark->label, p.x, p.y));
  return out + "</svg>" + marks_legend(groups, best_means) + "</figure>";
}

}  // namespace rumor::sim
