// The page that `rumor sim --stages --report` writes.
#include "runtime/base/text.h"
#include "runtime/report/html_page.h"
#include "runtime/report/svg_chart.h"
#include "runtime/sim/stages/staged_result.h"

namespace rumor::sim {

namespace {

std::string table_row(const std::vector<std::string>& cells, const char* tag) {
  std::string out = "<tr>";
  for (const std::string& cell : cells) out += str("<", tag, " class=\"n\">", cell, "</", tag, ">");
  return out + "</tr>";
}

std::string share_text(double share) { return fixed(share * 100, 1) + " %"; }

std::string stage_table(const StagedResult& r) {
  std::string out = "<div class=\"wide\"><table>";
  out += table_row({"stage", "units", "peers", "parameters", "computes", "waits for answers", "while links are full",
                    "waits for micro-batches", "uplink in use", "sent per peer", "replicas"},
                   "th");
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageResult& stage = r.stages[i];
    out += table_row({str(i + 1), str(stage.units.begin + 1, " to ", stage.units.end), str(stage.run.nodes),
                      str(stage.run.params), share_text(stage.utilisation), share_text(stage.waited_above),
                      share_text(stage.waited_link), share_text(stage.waited_below), share_text(stage.uplink),
                      byte_text(stage.run.sent_bytes_per_node), stage.run.identical ? "equal" : "not equal"},
                     "td");
  }
  return out + "</table></div>";
}

std::string facts(const StagedResult& r) {
  std::string out = str("<p>Of the joined model: test loss ", fixed(r.evaluation.loss, 4), " nats");
  if (r.evaluation.accuracy) out += str(", accuracy ", fixed(*r.evaluation.accuracy * 100, 2), " %");
  out += str(" after ", r.samples, " samples and ", fixed(r.virtual_seconds, 1), " s of virtual time.</p>");
  out += str("<p>", fixed(r.rows_per_second(), 1), " rows a second; processors and links alone allow ",
             fixed(r.bound.rows_per_second, 1), ". In one sentence: ", limit_text(r), ".</p>");
  return out;
}

std::string loss_over_time(const StagedResult& r) {
  Series loss{"loss", {}};
  for (const CurvePoint& p : r.curve) loss.points.emplace_back(p.virtual_seconds, p.loss);
  const std::string chart = line_chart({"Loss against time", "virtual seconds", "test loss"}, {loss});
  return "<div class=\"charts\">" + chart + "</div>";
}

std::string time_chart(const StagedResult& r) {
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const StageResult& stage = r.stages[i];
    const double answers = stage.waited_above + stage.waited_link;
    bars.push_back({str("stage ", i + 1), {stage.utilisation * 100, answers * 100, stage.waited_below * 100}});
  }
  return "<div class=\"charts\">" +
         bar_chart({"Time of a peer, %", "", ""}, {"computes", "waits for answers", "waits for micro-batches"}, bars) +
         "</div>";
}

}  // namespace

std::string to_html(const StagedResult& r, const std::string& name) {
  const std::string title = str(html_escape(name), " in ", r.stages.size(), " stages");
  std::string out = str("<h1>", title, "</h1><p>Seed ", r.sim_seed, ".</p>", facts(r));
  out += "<h2>Stages</h2>" + stage_table(r) + time_chart(r);
  out += "<h2>Learning</h2>" + loss_over_time(r) + learning_charts(r.curve);
  out += str("<h2>Traffic</h2><p>Between stages: ", byte_text(static_cast<double>(r.activation_bytes)),
             " of activations with labels, ", byte_text(static_cast<double>(r.gradient_bytes)), " of gradients, ",
             byte_text(static_cast<double>(r.control_bytes)), " of control. Everything: ",
             byte_text(static_cast<double>(r.all_bytes)), ".</p>");
  return html_page(title, out);
}

}  // namespace rumor::sim
