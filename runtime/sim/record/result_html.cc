#include "runtime/base/text.h"
#include "runtime/report/html_page.h"
#include "runtime/report/svg_chart.h"
#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

namespace {

std::string row(const std::string& name, const std::string& value, const std::string& meaning) {
  return str("<tr><th>", name, "</th><td class=\"n\">", value, "</td><td>", meaning, "</td></tr>");
}

std::string summary(const SimResult& r) {
  std::string out = "<table>";
  out += row("samples", str(r.samples), "training samples, all peers together");
  if (r.accuracy)
    out += row("test accuracy", fixed(*r.accuracy * 100, 2) + " %",
               "of the shared model, on data nobody trained on");
  out += row("test loss", fixed(r.loss, 4), "cross-entropy in nats");
  if (r.mode == "broadcast") {
    out += row("replicas",
               r.identical ? "<span class=\"good\">equal</span>" : "<span class=\"bad\">not equal</span>",
               str("digest ", html_escape(r.digest), "; ", r.updates, " updates, ", r.lost, " lost, ", r.doubled,
                   " doubled", undelivered_text(r)));
  } else {
    out += row("replicas", r.identical ? "equal" : str("within ", fixed(r.disagreement * 100, 1), " %"),
               html_escape(r.guarantee));
  }
  if (r.ratio > 0) {
    out += row("compression", fixed(r.ratio, 0) + " x",
               str("an update takes ", byte_text(r.update_bytes_mean), "; dense fp32 would take ",
                   byte_text(r.dense_update_bytes)));
    out += row("bits per entry", fixed(r.bits_per_entry, 2),
               str("independent positions and signs would need ", fixed(r.bound_bits_per_entry, 2)));
  }
  out += row("sent per peer", byte_text(r.sent_bytes_per_node),
             "frames of every kind, forwarding for others included");
  if (r.link_coding_ratio < 1)
    out += row("coding of links", fixed(r.link_coding_ratio, 3) + " x",
               "payload bytes on the links, those that are slow coding them shorter");
  if (r.mode == "broadcast") {
    out += row("copies per delivery", fixed(r.copies_per_delivery, 3), "1 means that nothing came twice");
    out += row("delivery", fixed(r.delivery_p50 * 1e3, 2) + " ms",
               str("median; 99 % within ", fixed(r.delivery_p99 * 1e3, 2), " ms"));
  }
  out += row("virtual time", fixed(r.virtual_seconds, 1) + " s",
             str("computed in ", fixed(r.wall_seconds, 1), " s"));
  return out + "</table>";
}

}  // namespace

std::string learning_charts(const std::vector<CurvePoint>& curve) {
  Series loss{"loss", {}}, loss_bytes{"loss", {}}, accuracy{"accuracy", {}}, accuracy_bytes{"accuracy", {}};
  for (const CurvePoint& p : curve) {
    const double samples = static_cast<double>(p.samples);
    loss.points.emplace_back(samples, p.loss);
    loss_bytes.points.emplace_back(p.sent_bytes_per_node, p.loss);
    if (!p.accuracy) continue;
    accuracy.points.emplace_back(samples, *p.accuracy * 100);
    accuracy_bytes.points.emplace_back(p.sent_bytes_per_node, *p.accuracy * 100);
  }
  std::string out = "<div class=\"charts\">";
  out += line_chart({"Loss against samples", "samples", "test loss"}, {loss});
  out += line_chart({"Loss against bytes", "bytes sent per peer", "test loss"}, {loss_bytes});
  if (!accuracy.points.empty()) {
    out += line_chart({"Accuracy against samples", "samples", "test accuracy, %"}, {accuracy});
    out +=
        line_chart({"Accuracy against bytes", "bytes sent per peer", "test accuracy, %"}, {accuracy_bytes});
  }
  return out + "</div>";
}

namespace {

std::string compression_charts(const SimResult& r) {
  Series threshold{"threshold", {}};
  for (const CurvePoint& p : r.curve)
    threshold.points.emplace_back(static_cast<double>(p.samples), p.threshold);
  std::vector<Series> density, residual;
  for (const TensorResult& tensor : r.tensors) {
    Series d{tensor.name, {}}, m{tensor.name, {}};
    for (std::size_t i = 0; i < tensor.density.size() && i < r.curve.size(); ++i) {
      d.points.emplace_back(static_cast<double>(r.curve[i].samples), tensor.density[i] * 100);
      m.points.emplace_back(static_cast<double>(r.curve[i].samples), tensor.residual_rms[i]);
    }
    density.push_back(std::move(d));
    residual.push_back(std::move(m));
  }
  std::string out = "<div class=\"charts\">";
  out += line_chart({"Threshold (one for all tensors)", "samples", "weight units", true}, {threshold});
  if (!density.empty()) {
    out += line_chart({"Density per tensor", "samples", "% of its entries in one update", true}, density);
    out += line_chart({"Residual per tensor", "samples", "root mean square", true}, residual);
  }
  return out + "</div>";
}

std::string traffic_chart(const SimResult& r) {
  std::vector<Bar> bars;
  for (const NodeTraffic& node : r.traffic)
    bars.push_back(
        {node.name, {static_cast<double>(node.sent_bytes), static_cast<double>(node.received_bytes)}});
  return "<div class=\"charts\">" +
         bar_chart({"Traffic per peer, bytes", "", ""}, {"sent", "received"}, bars) + "</div>";
}

}  // namespace

std::string undelivered_text(const SimResult& r) {
  return r.undelivered == 0 ? std::string() : str(", ", r.undelivered, " that only a killed peer had");
}

std::string to_html(const SimResult& r) {
  const std::string title = str(html_escape(r.run_name), ": ", r.nodes, " peers");
  std::string out;
  out += str("<h1>", title, "</h1><p>Run ", html_escape(r.run_id), ", mode ", html_escape(r.mode), ", seed ",
             r.sim_seed, ".</p>");
  out += summary(r);
  out += "<h2>Learning</h2>" + learning_charts(r.curve);
  if (r.mode == "broadcast") out += "<h2>Compression</h2>" + compression_charts(r);
  out += "<h2>Traffic</h2>" + traffic_chart(r);
  return html_page(title, out);
}

}  // namespace rumor::sim
