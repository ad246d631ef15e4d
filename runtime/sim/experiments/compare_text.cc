// Renders a comparison as a table, in sentences, as JSON and as a page.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/report/html_page.h"
#include "runtime/report/svg_chart.h"
#include "runtime/report/table.h"
#include "runtime/sim/experiments/compare.h"
#include "runtime/sim/experiments/figure_text.h"

namespace rumor::sim {

namespace {

using Json = nlohmann::ordered_json;

// Accuracy where the data has classes, loss where it has none.
std::string quality(const std::optional<double>& accuracy, const std::optional<double>& loss) {
  return accuracy ? percent(accuracy) : loss ? fixed(*loss, 3) : "-";
}

// Says how far the replicas agree at the end.
std::string agreement(const MethodFigures& m) {
  if (m.identical) return "equal";
  return m.disagreement > 0 ? "within " + percent(std::max(m.disagreement, 0.001), 1) : "NOT EQUAL";
}

// The row of a method, by column.
std::vector<std::string> row_of(const MethodFigures& m) {
  if (m.diverged()) return {m.label, "-", "diverged"};
  return {m.label,
          short_number(m.runs.front().rate),
          std::isfinite(m.loss) ? fixed(m.loss, 4) : "diverged",
          percent(m.accuracy),
          quality(m.accuracy_at_bytes, m.loss_at_bytes),
          quality(m.accuracy_at_time, m.loss_at_time),
          m.sent_bytes > 0 ? byte_text(m.sent_bytes) : "nothing",
          m.ring_ratio > 0 ? fixed(m.ring_ratio, m.ring_ratio < 10 ? 2 : 0) : "-",
          seconds(m.virtual_seconds),
          percent(m.idle, 0),
          agreement(m)};
}

Table table_of(const Comparison& c) {
  Table table;
  const std::string at_bytes = c.equal_bytes > 0 ? str("at ", byte_text(c.equal_bytes)) : "at equal bytes";
  const std::string at_time = str("at ", seconds(c.equal_seconds));
  table.head = {"method",         "rate",        "loss",         "accuracy", at_bytes,  at_time,
                "sent by a peer", "ring / sent", "virtual time", "idle",     "replicas"};
  for (const MethodFigures& m : c.methods) {
    table.rows.push_back(row_of(m));
    table.rows.back().resize(table.head.size(), "-");
  }
  return table;
}

std::string names_of(const std::vector<const MethodFigures*>& methods) {
  std::string out;
  for (const MethodFigures* m : methods) out += (out.empty() ? "" : ", ") + m->label;
  return out;
}

// The sentence of who is first by `figure`, of those who have one; none of fewer than two.
template <typename Figure, typename Sentence>
void add_first(std::vector<std::string>& out, const Comparison& c, Figure figure, Sentence sentence) {
  std::vector<const MethodFigures*> ranked;
  for (const MethodFigures& m : c.methods)
    if (const auto value = figure(m); value && std::isfinite(*value)) ranked.push_back(&m);
  if (ranked.size() < 2) return;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const MethodFigures* a, const MethodFigures* b) { return *figure(*a) < *figure(*b); });
  if (std::string said = sentence(ranked); !said.empty()) out.push_back(std::move(said));
}

// Where the first is before others end there.
std::string sooner(const std::vector<const MethodFigures*>& ranked) {
  std::string text;
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    const MethodFigures& other = *ranked[i];
    const auto after = seconds_to_the_end_of(other, *ranked[0]);
    if (!after || *after >= other.virtual_seconds) continue;
    const std::string times = fixed(other.virtual_seconds / std::max(1e-9, *after), 1);
    text += str(text.empty() ? "As good, sooner: " + ranked[0]->label + " is at " : "; at ",
                quality(other.accuracy, other.loss), " after ", seconds(*after), ", ", other.label,
                " ends there after ", seconds(other.virtual_seconds), " (", times, " times)");
  }
  return text.empty() ? text : text + ".";
}

Json json_of(const CurvePoint& p) {
  Json point = {{"samples", p.samples},
                {"virtual_seconds", p.virtual_seconds},
                {"loss", p.loss},
                {"sent_bytes_per_node", p.sent_bytes_per_node}};
  if (p.accuracy) point["accuracy"] = *p.accuracy;
  return point;
}

Json json_of(const Trial& t) {
  Json curve = Json::array();
  for (const CurvePoint& p : t.curve) curve.push_back(json_of(p));
  Json j = {{"rate", t.rate},
            {"seed", t.seed},
            {"samples", t.samples},
            {"params", t.params},
            {"loss", t.loss},
            {"virtual_seconds", t.virtual_seconds},
            {"sent_bytes_per_node", t.sent_bytes},
            {"idle_fraction", t.idle},
            {"identical", t.identical},
            {"disagreement", t.disagreement},
            {"curve", curve}};
  if (t.accuracy) j["accuracy"] = *t.accuracy;
  return j;
}

}  // namespace

std::vector<std::string> Comparison::reading() const {
  using Ranked = std::vector<const MethodFigures*>;
  std::vector<std::string> out;
  add_first(out, *this, [](const MethodFigures& m) { return m.seconds_to_common_loss; },
            [&](const Ranked& ranked) {
              std::string text = str("Fastest: ", ranked[0]->label, " is at a test loss of ", fixed(common_loss, 3),
                                     ", which all of these reach, after ", seconds(*ranked[0]->seconds_to_common_loss));
              for (std::size_t i = 1; i < ranked.size(); ++i)
                text += str("; ", ranked[i]->label, " after ", seconds(*ranked[i]->seconds_to_common_loss), " (",
                            fixed(*ranked[i]->seconds_to_common_loss /
                                      std::max(1e-9, *ranked[0]->seconds_to_common_loss), 1), " times)");
              return text + ".";
            });
  add_first(out, *this, [](const MethodFigures& m) { return m.seconds_to_common_loss; }, sooner);
  add_first(out, *this, [](const MethodFigures& m) { return std::optional(m.loss); },
            [&](const Ranked& ranked) {
              double noise = 0;
              for (const MethodFigures* m : ranked) noise = std::max(noise, m->loss_spread);
              const double lead = ranked[1]->loss - ranked[0]->loss;
              std::string text = str("Most accurate: ", ranked[0]->label, ", loss ", fixed(ranked[0]->loss, 4));
              if (ranked[0]->accuracy) text += str(", accuracy ", percent(ranked[0]->accuracy));
              text += str(", before ", names_of({ranked.begin() + 1, ranked.end()}), ".");
              if (seeds == 1) return text + " With one seed nobody knows how much of that is chance (--seeds).";
              return text + (lead <= noise ? " Its lead is no more than seeds differ." : "");
            });
  add_first(out, *this, [](const MethodFigures& m) { return m.loss_at_time; },
            [&](const Ranked& ranked) {
              return str("Best for this link (", network, "): ", ranked[0]->label, ", ",
                         quality(ranked[0]->accuracy_at_time, ranked[0]->loss_at_time), " after ",
                         seconds(equal_seconds), ", when the first method was done; ", ranked[1]->label, " ",
                         quality(ranked[1]->accuracy_at_time, ranked[1]->loss_at_time), ".");
            });
  return out;
}

std::string conditions_of(const Comparison& c) {
  const std::string most = c.most_samples > c.samples + c.samples / 20 ? str(" to ", c.most_samples) : "";
  return str(c.run_name, ", ", c.nodes, " peers, network ", c.network, ", ", c.samples, most, " samples each way, ",
             c.seeds, c.seeds == 1 ? " seed" : " seeds", "; rates tried: ", c.methods.front().search.size(),
             " a method");
}

std::string to_table(const Comparison& c) {
  std::string out = "\n" + conditions_of(c) + "\n\n" + text_table(table_of(c)) + "\n";
  for (const std::string& sentence : c.reading()) out += sentence + "\n";
  return out;
}

std::string to_json(const Trial& trial) { return json_of(trial).dump(2) + "\n"; }

Result<Trial> trial_from_json(const std::string& text) {
  Trial t;
  try {
    const Json j = Json::parse(text);
    const auto number = [](const Json& in, const char* key) {  // NaN is written as null
      return in.at(key).is_null() ? std::nan("") : in.at(key).get<double>();
    };
    t = {j.at("rate"), j.at("seed"), j.at("samples"), j.at("params"), number(j, "loss"), j.at("virtual_seconds"),
         j.at("sent_bytes_per_node"), j.at("idle_fraction"), {}, j.at("identical"), j.at("disagreement"), {}};
    if (j.contains("accuracy")) t.accuracy = j["accuracy"].get<double>();
    for (const Json& p : j.at("curve")) {
      CurvePoint point{p.at("samples"), p.at("virtual_seconds"), number(p, "loss"), {}, p.at("sent_bytes_per_node")};
      if (p.contains("accuracy")) point.accuracy = p["accuracy"].get<double>();
      t.curve.push_back(point);
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{Errc::corrupt, error.what()};
  }
  return t;
}

std::string to_json(const Comparison& c) {
  const auto maybe = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json methods = Json::array();
  for (const MethodFigures& m : c.methods) {
    Json search = Json::array(), runs = Json::array();
    for (const Trial& t : m.search) search.push_back({{"rate", t.rate}, {"loss", t.loss}});
    for (const Trial& t : m.runs) runs.push_back(json_of(t));
    methods.push_back({{"method", m.label},
                       {"rate", m.runs.front().rate},
                       {"loss", m.loss},
                       {"loss_spread", m.loss_spread},
                       {"accuracy", maybe(m.accuracy)},
                       {"accuracy_spread", maybe(m.accuracy_spread)},
                       {"loss_at_equal_bytes", maybe(m.loss_at_bytes)},
                       {"accuracy_at_equal_bytes", maybe(m.accuracy_at_bytes)},
                       {"loss_at_equal_time", maybe(m.loss_at_time)},
                       {"accuracy_at_equal_time", maybe(m.accuracy_at_time)},
                       {"seconds_to_common_loss", maybe(m.seconds_to_common_loss)},
                       {"sent_bytes_per_node", m.sent_bytes},
                       {"ring_bytes_per_node", m.ring_bytes},
                       {"ring_ratio", m.ring_ratio},
                       {"virtual_seconds", m.virtual_seconds},
                       {"idle_fraction", m.idle},
                       {"identical", m.identical},
                       {"disagreement", m.disagreement},
                       {"rates_tried", search},
                       {"runs", runs}});
  }
  const Json j = {{"command", "compare"},           {"run", c.run_name},
                  {"network", c.network},           {"nodes", c.nodes},
                  {"samples", c.samples},           {"params", c.params},
                  {"seeds", c.seeds},               {"equal_bytes", c.equal_bytes},
                  {"equal_seconds", c.equal_seconds}, {"common_loss", c.common_loss},
                  {"reading", c.reading()},         {"methods", methods}};
  return j.dump(2) + "\n";
}

std::string to_html(const Comparison& c) {
  const std::string title = "Ways to train " + html_escape(c.run_name);
  std::string out = str("<h1>", title, "</h1><p>", html_escape(conditions_of(c)), ".</p><ul>");
  for (const std::string& sentence : c.reading()) out += "<li>" + html_escape(sentence) + "</li>";
  out += "</ul>" + html_table(table_of(c)) + "<div class=\"charts\">";
  using Axis = double (*)(const CurvePoint&);
  const std::pair<const char*, Axis> axes[] = {
      {"samples", [](const CurvePoint& p) { return static_cast<double>(p.samples); }},
      {"bytes sent by a peer", [](const CurvePoint& p) { return p.sent_bytes_per_node; }},
      {"virtual seconds", [](const CurvePoint& p) { return p.virtual_seconds; }}};
  for (const auto& [name, x] : axes) {
    std::vector<Series> loss, accuracy;
    for (const MethodFigures& m : c.methods) {
      Series losses{m.label, {}}, accuracies{m.label, {}};
      for (const CurvePoint& p : m.runs.front().curve) {
        if (std::isfinite(p.loss)) losses.points.emplace_back(x(p), p.loss);
        if (p.accuracy) accuracies.points.emplace_back(x(p), *p.accuracy * 100);
      }
      loss.push_back(std::move(losses));
      if (!accuracies.points.empty()) accuracy.push_back(std::move(accuracies));
    }
    out += line_chart({str("Loss against ", name), name, "test loss"}, loss);
    if (!accuracy.empty()) out += line_chart({str("Accuracy against ", name), name, "test accuracy, %"}, accuracy);
  }
  out += "</div><p>Curves are of the first seed at the rate that did best.</p>";
  out += "<p>Rates tried, and the loss each ended with:</p><ul>";
  for (const MethodFigures& m : c.methods) {
    out += "<li>" + html_escape(m.label) + ": ";
    for (const Trial& t : m.search)
      out += str(&t == &m.search.front() ? "" : ", ", short_number(t.rate), " ", fixed(t.loss, 4));
    out += "</li>";
  }
  return html_page(title, out + "</ul>");
}

}  // namespace rumor::sim
