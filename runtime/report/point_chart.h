// PointChart: marks on two axes as inline SVG, for costs against results: groups of marks, the best of them joined by a
// dashed line of steps. No scripts, no fonts, no files.
//
// Each group has a colour and a shape of its own. A label stands beside its mark where it covers no other mark and no
// other label, off the lines where it can, and is left out where there is no such place. A browser shows every hint
// under the pointer.
//
// Thread: plain functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/report/svg_chart.h"

namespace rumor::sim {

struct Mark {
  double x = 0, y = 0;
  std::string label, hint;
  bool best = false;  // filled, and on the dashed line; others are hollow
};

struct MarkGroup {
  std::string name;
  // Marks at x = 0 or below have no place on a logarithmic axis: each is a level line across the chart instead, with
  // its label on it. Marks that are no numbers are left out.
  std::vector<Mark> marks;
  std::vector<std::pair<double, double>> line;  // ascending x; drawn thin
};

// `best_means`: what the legend says of the dashed line.
std::string point_chart(const ChartText& text, const std::vector<MarkGroup>& groups, const std::string& best_means);

}  // namespace rumor::sim
