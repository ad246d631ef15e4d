#include "runtime/sim/compare.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

using Json = nlohmann::ordered_json;

// A curve's value where `x` of a point is `at`, on a straight line between two points; nothing before the first.
template <typename X, typename Y>
std::optional<double> value_at(const std::vector<CurvePoint>& curve, double at, X x, Y y) {
  const CurvePoint* before = nullptr;
  for (const CurvePoint& point : curve) {
    if (x(point) > at) {
      if (before == nullptr) return std::nullopt;
      const double share = (at - x(*before)) / (x(point) - x(*before));
      return y(*before) + share * (y(point) - y(*before));
    }
    before = &point;
  }
  return before == nullptr ? std::nullopt : std::optional(y(*before));
}

double seconds_of(const CurvePoint& point) { return point.virtual_seconds; }
double bytes_of(const CurvePoint& point) { return point.sent_bytes_per_node; }
double loss_of(const CurvePoint& point) { return point.loss; }
double accuracy_of(const CurvePoint& point) { return point.accuracy.value_or(0); }

// When a curve first is at `loss` or below.
std::optional<double> seconds_to(const std::vector<CurvePoint>& curve, double loss) {
  const CurvePoint* before = nullptr;
  for (const CurvePoint& point : curve) {
    if (point.loss <= loss) {
      if (before == nullptr || before->loss <= point.loss) return point.virtual_seconds;
      const double share = (before->loss - loss) / (before->loss - point.loss);
      return before->virtual_seconds + share * (point.virtual_seconds - before->virtual_seconds);
    }
    before = &point;
  }
  return std::nullopt;
}

// Mean over the runs in which `figure` gives one; nothing when none does.
template <typename Figure>
std::optional<double> mean(const std::vector<Trial>& runs, Figure figure) {
  double sum = 0;
  std::size_t count = 0;
  for (const Trial& run : runs) {
    const std::optional<double> one = figure(run);
    if (!one) continue;
    sum += *one;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

template <typename Figure>
double spread(const std::vector<Trial>& runs, Figure figure) {
  double least = figure(runs.front()), most = least;
  for (const Trial& run : runs) {
    least = std::min(least, figure(run));
    most = std::max(most, figure(run));
  }
  return most - least;
}

// A loss that is not finite is worse than any.
double rank_of(const Trial& trial) {
  return std::isfinite(trial.loss) ? trial.loss : HUGE_VAL;
}

void sum_up(MethodFigures& m) {
  m.loss = *mean(m.runs, [](const Trial& t) { return std::optional(t.loss); });
  m.loss_spread = spread(m.runs, [](const Trial& t) { return t.loss; });
  m.virtual_seconds = *mean(m.runs, [](const Trial& t) { return std::optional(t.virtual_seconds); });
  m.sent_bytes = *mean(m.runs, [](const Trial& t) { return std::optional(t.sent_bytes); });
  m.idle = *mean(m.runs, [](const Trial& t) { return std::optional(t.idle); });
  m.accuracy = mean(m.runs, [](const Trial& t) { return t.accuracy; });
  if (m.accuracy) m.accuracy_spread = spread(m.runs, [](const Trial& t) { return t.accuracy.value_or(0); });
  m.identical = std::all_of(m.runs.begin(), m.runs.end(), [](const Trial& t) { return t.identical; });
}

// What can be told of a method only beside the others.
void set_side_by_side(const Comparison& c, MethodFigures& m, double ring_bytes) {
  const auto at = [&](auto x, double where, auto y) {
    return mean(m.runs, [&](const Trial& t) { return value_at(t.curve, where, x, y); });
  };
  if (m.sent_bytes > 0) {
    m.loss_at_bytes = at(bytes_of, c.equal_bytes, loss_of);
    if (m.accuracy) m.accuracy_at_bytes = at(bytes_of, c.equal_bytes, accuracy_of);
    m.ring_ratio = ring_bytes / m.sent_bytes;
  }
  m.loss_at_time = at(seconds_of, c.equal_seconds, loss_of);
  if (m.accuracy) m.accuracy_at_time = at(seconds_of, c.equal_seconds, accuracy_of);
  m.seconds_to_common_loss = mean(m.runs, [&](const Trial& t) { return seconds_to(t.curve, c.common_loss); });
}

}  // namespace

Result<Method> parse_method(const std::string& text, const RunConfig& base, std::size_t nodes) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const std::string kind = parts.front();
  if (kind != "broadcast" && kind != "sync" && kind != "alone")
    return Error{Errc::usage, str("there is no method '", kind, "'; choose broadcast, sync or alone, with keys of the ",
                                  "run file after colons if need be: sync:optimizer.kind=adam:optimizer.rate=0.002")};
  Method method{text, base, kind == "alone" ? 1 : nodes};
  method.config.mode = kind == "sync" ? "sync" : "broadcast";
  for (std::size_t p = 1; p < parts.size(); ++p) {
    if (auto set = override_run_config(method.config, parts[p]); !set)
      return Error{set.error().code, str("method ", text, ": ", set.error().text)};
  }
  if (method.config.samples != base.samples)
    return Error{Errc::usage, str("method ", text, ": all methods see equally many samples; set run.samples for all")};
  return method;
}

Trial trial_of(const SimResult& r, double rate) {
  Trial t{rate, r.sim_seed, r.samples, r.params, r.loss, r.virtual_seconds, r.sent_bytes_per_node, r.idle_fraction,
          r.accuracy, r.identical, r.curve};
  // The last point of a curve is some way before the end.
  if (t.curve.empty() || t.curve.back().virtual_seconds < r.virtual_seconds)
    t.curve.push_back({r.samples, r.virtual_seconds, r.loss, r.accuracy, r.sent_bytes_per_node});
  return t;
}

std::string to_json(const Trial& t) {
  Json curve = Json::array();
  for (const CurvePoint& p : t.curve) {
    Json point = {{"samples", p.samples},
                  {"virtual_seconds", p.virtual_seconds},
                  {"loss", p.loss},
                  {"sent_bytes_per_node", p.sent_bytes_per_node}};
    if (p.accuracy) point["accuracy"] = *p.accuracy;
    curve.push_back(std::move(point));
  }
  Json j = {{"rate", t.rate},
            {"seed", t.seed},
            {"samples", t.samples},
            {"params", t.params},
            {"loss", t.loss},
            {"virtual_seconds", t.virtual_seconds},
            {"sent_bytes_per_node", t.sent_bytes},
            {"idle_fraction", t.idle},
            {"identical", t.identical},
            {"curve", curve}};
  if (t.accuracy) j["accuracy"] = *t.accuracy;
  return j.dump(2) + "\n";
}

Result<Trial> trial_from_json(const std::string& text) {
  Trial t;
  try {
    const Json j = Json::parse(text);
    const auto number = [](const Json& in, const char* key) {  // NaN is written as null
      return in.at(key).is_null() ? std::nan("") : in.at(key).get<double>();
    };
    t = {j.at("rate"), j.at("seed"), j.at("samples"), j.at("params"), number(j, "loss"), j.at("virtual_seconds"),
         j.at("sent_bytes_per_node"), j.at("idle_fraction"), {}, j.at("identical"), {}};
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

Result<Comparison> compare(const std::vector<Method>& methods, const std::vector<double>& factors,
                           std::uint64_t first_seed, std::uint64_t seeds, const RunTrial& run) {
  RUMOR_CHECK(!methods.empty() && !factors.empty() && seeds >= 1);
  Comparison c;
  c.run_name = methods.front().config.name;
  c.seeds = seeds;
  for (const Method& method : methods) {
    MethodFigures m;
    m.label = method.label;
    for (const double factor : factors) {
      auto trial = run(method, method.config.rate * factor, first_seed);
      if (!trial) return Error{trial.error().code, str(method.label, ": ", trial.error().text)};
      m.search.push_back(std::move(trial).value());
    }
    m.runs.push_back(*std::min_element(m.search.begin(), m.search.end(), [](const Trial& a, const Trial& b) {
      return rank_of(a) < rank_of(b);
    }));
    if (!std::isfinite(m.runs.front().loss))
      return Error{Errc::usage, str(method.label, " diverges at every rate that was tried; add lower ones to --rates")};
    for (std::uint64_t s = 1; s < seeds; ++s) {
      auto trial = run(method, m.runs.front().rate, first_seed + s);
      if (!trial) return Error{trial.error().code, str(method.label, ": ", trial.error().text)};
      m.runs.push_back(std::move(trial).value());
    }
    sum_up(m);
    c.methods.push_back(std::move(m));
    c.nodes = std::max(c.nodes, method.nodes);
  }
  c.samples = c.methods.front().runs.front().samples;
  c.params = c.methods.front().runs.front().params;
  for (const MethodFigures& m : c.methods) {
    if (m.sent_bytes > 0) c.equal_bytes = c.equal_bytes == 0 ? m.sent_bytes : std::min(c.equal_bytes, m.sent_bytes);
    c.equal_seconds = c.equal_seconds == 0 ? m.virtual_seconds : std::min(c.equal_seconds, m.virtual_seconds);
    if (std::isfinite(m.loss)) c.common_loss = std::max(c.common_loss, m.loss + m.loss_spread);
  }
  const auto nodes = static_cast<double>(c.nodes);
  const double steps = static_cast<double>(c.samples) / (methods.front().config.batch * nodes);
  const double ring_bytes = steps * 2 * (nodes - 1) / nodes * 4 * static_cast<double>(c.params);
  for (MethodFigures& m : c.methods) set_side_by_side(c, m, ring_bytes);
  return c;
}

}  // namespace rumor::sim
