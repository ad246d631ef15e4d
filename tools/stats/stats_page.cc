// The page of `rumor stats --report`.
#include <cmath>

#include "runtime/base/text.h"
#include "runtime/report/html_page.h"
#include "runtime/report/svg_chart.h"
#include "tools/stats/stats_report.h"

namespace rumor::tools {
namespace {

using sim::Bar;
using sim::Series;

std::string charts(const std::string& inside) {
  return "<div class=\"charts\">" + inside + "</div>";
}

std::string history_charts(const StatsReport& report) {
  Series canonical{"canonical (Rice)", {}}, adapt{"ADAPT", {}}, link{"LINK", {}}, bound{"independent positions", {}};
  Series entries{"entries", {}}, threshold{"threshold", {}};
  for (std::size_t i = 0; i < report.history.size(); ++i) {
    const compress::UpdateFigures& update = report.history[i];
    const double x = static_cast<double>(i + 1);
    entries.points.emplace_back(x, static_cast<double>(update.entries));
    if (update.threshold > 0) threshold.points.emplace_back(x, update.threshold);
    if (update.entries == 0) continue;
    const double bits = 8 / static_cast<double>(update.entries);
    canonical.points.emplace_back(x, bits * static_cast<double>(update.payload_bytes));
    bound.points.emplace_back(x, bits * update.bound_bits / 8);
    if (update.adapt_bytes > 0) adapt.points.emplace_back(x, bits * static_cast<double>(update.adapt_bytes));
    if (update.link_bytes > 0) link.points.emplace_back(x, bits * static_cast<double>(update.link_bytes));
  }
  std::string out =
      sim::line_chart({"Bits per entry", "update", "bits, sign included"}, {canonical, bound, adapt, link});
  out += sim::line_chart({"Entries of an update", "update", "entries"}, {entries});
  if (!threshold.points.empty())
    out += sim::line_chart({"Threshold", "update", "weight units", true}, {threshold});
  return charts(out);
}

std::string histogram(const std::string& title, const std::vector<Bin>& bins) {
  std::vector<Bar> bars;
  double below = 0;
  for (const Bin& bin : bins) {
    const bool last = !std::isfinite(bin.limit);
    bars.push_back({str(last ? "\u2265 " : "< ", sim::short_number(last ? below : bin.limit)), {bin.share * 100}});
    below = bin.limit;
  }
  return sim::bar_chart({title, "", ""}, {"% of all"}, bars);
}

std::string residual_charts(const StatsReport& report) {
  std::string out;
  if (!report.residual_sizes.empty())
    out += histogram("Residual: % of parameters by size, in thresholds", report.residual_sizes);
  if (!report.residual_ages.empty())
    out += histogram("Residual: % of waiting change by updates since last sent", report.residual_ages);
  return out.empty() ? out : "<h2>What waits</h2>" + charts(out);
}

std::string tensor_charts(const StatsReport& report) {
  std::vector<Bar> bits, density;
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.entries == 0) continue;
    bits.push_back({tensor.name, {tensor.bits_per_entry, tensor.bound_bits_per_entry}});
    density.push_back({tensor.name, {tensor.density * 100}});
  }
  if (bits.empty()) return {};
  return "<h2>Tensors</h2>" +
         charts(sim::bar_chart({"Bits per entry", "", ""}, {"canonical", "independent positions here"}, bits) +
                sim::bar_chart({"Density, %", "", ""}, {"density"}, density));
}

}  // namespace

std::string StatsReport::to_page() const {
  const std::string title = "Compression of " + sim::html_escape(source);
  std::string out = "<h1>" + title + "</h1><pre>" + sim::html_escape(to_table()) + "</pre>";
  if (!history.empty()) out += "<h2>History</h2>" + history_charts(*this);
  return sim::html_page(title, out + residual_charts(*this) + tensor_charts(*this));
}

}  // namespace rumor::tools
