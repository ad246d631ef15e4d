#include "runtime/sim/experiments/compare.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

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

// When `y` of a curve first is at `goal` or below.
template <typename Y>
std::optional<double> seconds_to(const std::vector<CurvePoint>& curve, double goal, Y y) {
  const CurvePoint* before = nullptr;
  for (const CurvePoint& point : curve) {
    if (y(point) <= goal) {
      if (before == nullptr || y(*before) <= y(point)) return point.virtual_seconds;
      const double share = (y(*before) - goal) / (y(*before) - y(point));
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

// A loss that is not finite ranks below every finite one.
double rank_of(const Trial& trial) {
  return std::isfinite(trial.loss) ? trial.loss : HUGE_VAL;
}

// Bytes that each peer would have sent with a ring all-reduce at every step among as many peers.
double ring_bytes(const Method& method, const Trial& run) {
  const std::size_t stages = method.config.pipeline.stages;
  const double nodes = static_cast<double>((method.nodes + stages - 1) / stages);  // with the same parameters
  const double steps = static_cast<double>(run.samples) / (method.config.batch_rules().rows(method.nodes) * nodes);
  return steps * 2 * (nodes - 1) / nodes * 4 * static_cast<double>(run.params);
}

void sum_up(MethodFigures& m) {
  m.loss = *mean(m.runs, [](const Trial& t) { return std::optional(t.loss); });
  m.loss_spread = spread(m.runs, [](const Trial& t) { return t.loss; });
  m.virtual_seconds = *mean(m.runs, [](const Trial& t) { return std::optional(t.virtual_seconds); });
  m.sent_bytes = *mean(m.runs, [](const Trial& t) { return std::optional(t.sent_bytes); });
  m.idle = *mean(m.runs, [](const Trial& t) { return std::optional(t.idle); });
  m.accuracy = mean(m.runs, [](const Trial& t) { return t.accuracy; });
  if (m.accuracy) m.accuracy_spread = spread(m.runs, [](const Trial& t) { return t.accuracy.value_or(0); });
  m.disagreement = *mean(m.runs, [](const Trial& t) { return std::optional(t.disagreement); });
  m.identical = std::all_of(m.runs.begin(), m.runs.end(), [](const Trial& t) { return t.identical; });
}

// Sets the figures of a method that need the other methods for comparison.
void set_side_by_side(const Comparison& c, MethodFigures& m) {
  if (m.diverged()) return;
  const auto at = [&](auto x, double where, auto y) {
    return mean(m.runs, [&](const Trial& t) { return value_at(t.curve, where, x, y); });
  };
  if (m.sent_bytes > 0) {
    m.loss_at_bytes = at(bytes_of, c.equal_bytes, loss_of);
    if (m.accuracy) m.accuracy_at_bytes = at(bytes_of, c.equal_bytes, accuracy_of);
    m.ring_ratio = m.ring_bytes / m.sent_bytes;
  }
  m.loss_at_time = at(seconds_of, c.equal_seconds, loss_of);
  if (m.accuracy) m.accuracy_at_time = at(seconds_of, c.equal_seconds, accuracy_of);
  m.seconds_to_common_loss = mean(m.runs, [&](const Trial& t) { return seconds_to(t.curve, c.common_loss, loss_of); });
}

}  // namespace

std::optional<double> seconds_to_the_end_of(const MethodFigures& other, const MethodFigures& m) {
  std::vector<CurvePoint> means;  // over seeds, at each time at which one of them has a point
  for (const Trial& run : m.runs)
    for (const CurvePoint& point : run.curve) means.push_back(point);
  std::sort(means.begin(), means.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return a.virtual_seconds < b.virtual_seconds;
  });
  for (CurvePoint& point : means) {
    const auto at = [&](auto y) {
      return *mean(m.runs, [&](const Trial& t) { return value_at(t.curve, point.virtual_seconds, seconds_of, y); });
    };
    point.loss = at(loss_of);
    point.accuracy = at(accuracy_of);
  }
  if (!other.accuracy) return seconds_to(means, other.loss, loss_of);
  return seconds_to(means, -*other.accuracy, [](const CurvePoint& point) { return -accuracy_of(point); });
}

std::string method_names() {
  std::string names;
  for (const std::string_view mode : exchange_modes) names += std::string(mode) + ", ";
  return names + "pipeline, alone";
}

std::vector<std::string> parts_of_method(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<Method> parse_method(const std::string& text, const RunConfig& base, std::size_t nodes) {
  const std::vector<std::string> parts = parts_of_method(text);
  const std::string kind = parts.front();
  const bool is_mode = std::count(std::begin(exchange_modes), std::end(exchange_modes), kind) > 0;
  const bool is_cut = kind == "pipeline";
  if (!is_mode && !is_cut && kind != "alone")
    return Error{Errc::usage, str("there is no method '", kind, "'; choose ", method_names(), ", with keys of the run ",
                                  "file after colons if need be: sync:optimizer.kind=adam:optimizer.rate=0.002")};
  Method method{text, base, kind == "alone" ? 1 : nodes};
  method.config.mode = is_mode ? kind : "broadcast";
  if (!is_cut) method.config.pipeline = {};
  for (std::size_t p = 1; p < parts.size(); ++p) {
    if (auto set = override_run_config(method.config, parts[p]); !set)
      return Error{set.error().code, str("method ", text, ": ", set.error().text)};
  }
  const RunConfig& own = method.config;
  if (is_cut != (own.pipeline.stages > 1))
    return Error{Errc::usage, str("method ", text, is_cut ? ": it cuts the model into stages; say how many, as in "
                                                            "pipeline:pipeline.stages=3"
                                                          : ": pipeline.stages is for the method pipeline alone")};
  const auto refuse = [&](bool differs, const char* key, const char* why) -> Result<void> {
    if (!differs) return {};
    return Error{Errc::usage, str("method ", text, ": ", why, "; set ", key, " for all, with --set")};
  };
  for (const auto& same : {refuse(own.data.kind != base.data.kind, "data.kind", "all methods see the same data"),
                           refuse(own.data.path != base.data.path, "data.path", "all methods see the same data"),
                           refuse(own.data.tokens != base.data.tokens, "data.tokens", "all methods see the same data"),
                           refuse(own.data.seed != base.data.seed, "data.seed", "all methods see the same data"),
                           refuse(own.model.context != base.model.context, "model.context", "all cut the data alike"),
                           refuse(own.weights != base.weights, "model.weights", "all methods start alike")})
    if (!same) return same.error();
  return method;
}

Trial trial_of(const SimResult& r, double rate) {
  return {rate,           r.sim_seed,  r.samples,   r.params,       r.loss, r.virtual_seconds, r.sent_bytes_per_node,
          r.idle_fraction, r.accuracy, r.identical, r.disagreement, r.curve};
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
    for (std::uint64_t s = 1; s < seeds && !m.diverged(); ++s) {
      auto trial = run(method, m.runs.front().rate, first_seed + s);
      if (!trial) return Error{trial.error().code, str(method.label, ": ", trial.error().text)};
      m.runs.push_back(std::move(trial).value());
    }
    sum_up(m);
    m.ring_bytes = ring_bytes(method, m.runs.front());
    c.methods.push_back(std::move(m));
    c.nodes = std::max(c.nodes, method.nodes);
  }
  for (const MethodFigures& m : c.methods) {
    if (m.diverged()) continue;
    const std::uint64_t samples = m.runs.front().samples;
    c.samples = c.samples == 0 ? samples : std::min(c.samples, samples);
    c.most_samples = std::max(c.most_samples, samples);
    c.params = m.runs.front().params;
    if (m.sent_bytes > 0) c.equal_bytes = c.equal_bytes == 0 ? m.sent_bytes : std::min(c.equal_bytes, m.sent_bytes);
    c.equal_seconds = c.equal_seconds == 0 ? m.virtual_seconds : std::min(c.equal_seconds, m.virtual_seconds);
    if (std::isfinite(m.loss)) c.common_loss = std::max(c.common_loss, m.loss + m.loss_spread);
  }
  if (c.params == 0)
    return Error{Errc::usage, "every method diverges at every rate that was tried; add lower ones to --rates"};
  for (MethodFigures& m : c.methods) set_side_by_side(c, m);
  return c;
}

}  // namespace rumor::sim
