#include "runtime/sim/experiments/frontier.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/report/svg_chart.h"

namespace rumor::sim {

namespace {

// The part of a method that decides how much it sends.
enum class Dial : std::uint8_t { none, density, update_bytes, second_bytes, local_steps, server_steps };

Dial dial_of(const Method& method) {
  const RunConfig& config = method.config;
  const RoundRules& rounds = config.round_rules;
  if (method.nodes == 1) return Dial::none;
  if (config.mode == "downpour") return Dial::server_steps;
  if (config.mode == "admm") return Dial::local_steps;
  if (config.mode == "sync" && rounds.outer != "sparse") {
    const bool every_step = rounds.steps() == 1 && rounds.participation == 1 && rounds.outer == "none";
    return every_step ? Dial::none : Dial::local_steps;
  }
  if (config.bytes_per_update > 0) return Dial::update_bytes;
  return config.bytes_per_second > 0 ? Dial::second_bytes : Dial::density;
}

double density_of(const Method& method) { return method.config.density_for(method.nodes, 1); }

std::string per_step(std::uint32_t steps, double factor) {
  return str(static_cast<std::uint32_t>(std::clamp(std::round(steps / factor), 1.0, 1e6)));
}

// The keys and values with which the method sends `factor` times the bytes. Empty: nothing to turn.
std::vector<std::pair<std::string, std::string>> turned(const Method& method, double factor) {
  const RunConfig& config = method.config;
  switch (dial_of(method)) {
    case Dial::none:
      return {};
    case Dial::density:
      return {{"compress.density", str(std::clamp(density_of(method) * factor, 1e-6, density_max))}};
    case Dial::update_bytes:
      return {{"compress.bytes_per_update", str(std::clamp(config.bytes_per_update * factor, 64.0, 1e12))}};
    case Dial::second_bytes:
      return {{"compress.bytes_per_second", str(std::clamp(config.bytes_per_second * factor, 1.0, 1e12))}};
    case Dial::local_steps:
      return {{"exchange.local_steps", per_step(config.round_rules.steps(), factor)}};
    case Dial::server_steps:
      return {{"exchange.fetch_every", per_step(config.server_rules.fetch_every, factor)},
              {"exchange.push_every", per_step(config.server_rules.push_every, factor)}};
  }
  return {};
}

// The method's text with these keys, in place of values of its own.
std::string with_keys(const std::string& text, const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string out;
  for (const std::string& part : parts_of_method(text)) {
    const bool replaced = std::any_of(keys.begin(), keys.end(), [&](const auto& key) {
      return part.substr(0, part.find('=')) == key.first;
    });
    if (!replaced) out += (out.empty() ? "" : ":") + part;
  }
  for (const auto& [key, value] : keys) out += ":" + key + "=" + value;
  return out;
}

struct SettingText {
  std::string text, brief;
};

SettingText text_of(const Method& method) {
  const RunConfig& config = method.config;
  const ServerRules& server = config.server_rules;
  std::string brief;
  switch (dial_of(method)) {
    case Dial::none:
      return method.nodes == 1 ? SettingText{"one peer, all data", {}} : SettingText{"every step", {}};
    case Dial::density:
      brief = short_number(density_of(method) * 100) + " %";
      return {"density " + brief, brief};
    case Dial::update_bytes:
      brief = byte_text(config.bytes_per_update);
      return {brief + " an update", brief};
    case Dial::second_bytes:
      brief = byte_text(config.bytes_per_second) + "/s";
      return {brief, brief};
    case Dial::local_steps:
      brief = config.round_rules.steps() == 1 ? "1 step" : str(config.round_rules.steps(), " steps");
      return {brief + " a round", brief};
    case Dial::server_steps:
      if (server.fetch_every != server.push_every)
        brief = str("every ", server.fetch_every, " / ", server.push_every, " steps");
      else
        brief = server.fetch_every == 1 ? "every step" : str("every ", server.fetch_every, " steps");
      return {"fetch, push " + brief, brief};
  }
  return {};
}

// The name that papers and METHODS.md have for it.
std::string name_of(const Method& method) {
  const RunConfig& config = method.config;
  const RoundRules& rounds = config.round_rules;
  if (method.nodes == 1) return "alone";
  if (config.mode == "average") return "averaging with neighbours";
  if (config.mode == "codistill") return "codistillation";
  if (config.mode == "downpour") return "Downpour";
  if (config.mode == "admm") return "ADMM";
  if (config.mode != "sync") return config.mode;
  if (rounds.outer == "sparse") return "SparseLoCo";
  if (rounds.outer == "nesterov") return "DiLoCo";
  if (rounds.participation < 1) return "FedAvg";
  return rounds.steps() > 1 ? "local SGD" : "dense averaging";
}

// Two methods of one name are told apart by what was asked for.
void part_names(std::vector<FrontierMethod>& methods) {
  std::vector<std::string> names;
  for (const FrontierMethod& method : methods) names.push_back(method.name);
  for (FrontierMethod& method : methods)
    if (std::count(names.begin(), names.end(), method.name) > 1) method.name = method.asked;
}

Result<std::vector<FrontierSetting>> settings_of(const Method& own, std::size_t number, const RunConfig& base,
                                                 std::size_t nodes, const std::vector<double>& factors) {
  std::vector<FrontierSetting> settings;
  std::set<std::string> seen;
  for (const double factor : factors) {
    const auto keys = turned(own, factor);
    // At its own setting a method keeps its name, so that --keep knows its trials again.
    const std::string text = factor == 1 || keys.empty() ? own.label : with_keys(own.label, keys);
    if (!seen.insert(with_keys(own.label, keys)).second) continue;
    auto run = parse_method(text, base, nodes);
    if (!run) return run.error();
    SettingText words = text_of(*run);
    settings.push_back({number, std::move(words.text), std::move(words.brief), std::move(run).value()});
  }
  return settings;
}

}  // namespace

std::vector<bool> undominated(const std::vector<std::pair<double, double>>& costs) {
  const auto is_number = [](const auto& cost) { return std::isfinite(cost.first) && std::isfinite(cost.second); };
  std::vector<bool> out;
  for (const auto& mine : costs)
    out.push_back(is_number(mine) && std::none_of(costs.begin(), costs.end(), [&](const auto& other) {
                    return is_number(other) && other.first <= mine.first && other.second <= mine.second &&
                           other != mine;
                  }));
  return out;
}

std::vector<std::string> frontier_methods() {
  return {"broadcast",
          "average:compress.density=0.03",
          "sync:exchange.local_steps=10:exchange.outer=sparse:compress.density=0.03",
          "sync:exchange.local_steps=10",
          "sync:exchange.local_steps=1",
          "alone"};
}

std::vector<Method> FrontierPlan::runs() const {
  std::vector<Method> all;
  for (const FrontierSetting& setting : settings) all.push_back(setting.run);
  return all;
}

Result<FrontierPlan> plan_frontier(const std::vector<std::string>& methods, const RunConfig& base, std::size_t nodes,
                                   std::vector<double> factors) {
  std::sort(factors.begin(), factors.end());
  FrontierPlan plan;
  bool sends = false;
  for (const std::string& text : methods) {
    for (const FrontierMethod& before : plan.methods)
      if (before.asked == text) return Error{Errc::usage, str("method ", text, " is named twice; leave one out")};
    auto own = parse_method(text, base, nodes);
    if (!own) return own.error();
    auto settings = settings_of(*own, plan.methods.size(), base, nodes, factors);
    if (!settings) return settings.error();
    plan.methods.push_back({text, name_of(*own)});
    sends |= own->nodes > 1;
    for (FrontierSetting& setting : *settings) plan.settings.push_back(std::move(setting));
  }
  if (!sends)
    return Error{Errc::usage, "a frontier is of bytes sent, and one peer alone sends none; add another method, such as "
                              "broadcast"};
  part_names(plan.methods);
  return plan;
}

Frontier frontier_of(const FrontierPlan& plan, Comparison compared) {
  RUMOR_CHECK(plan.settings.size() == compared.methods.size());
  Frontier f{std::move(compared), plan.methods, {}};
  std::vector<std::pair<double, double>> bytes, time;
  for (std::size_t i = 0; i < plan.settings.size(); ++i) {
    const FrontierSetting& setting = plan.settings[i];
    const MethodFigures& m = f.compared.methods[i];
    FrontierPoint point{setting.method, setting.text, setting.brief};
    const double loss = m.diverged() ? std::nan("") : m.loss;
    if (!m.diverged() && m.sent_bytes > 0) {
      const Trial& run = m.runs.front();
      const double batches = static_cast<double>(run.samples) /
                             (setting.run.config.batch_rules().rows(setting.run.nodes) *
                              static_cast<double>(setting.run.nodes));
      point.bytes = m.sent_bytes / (static_cast<double>(run.params) * batches);
    }
    bytes.emplace_back(loss, point.bytes > 0 ? point.bytes : std::nan(""));
    time.emplace_back(loss, m.virtual_seconds);
    f.points.push_back(std::move(point));
  }
  const std::vector<bool> cheapest = undominated(bytes), quickest = undominated(time);
  for (std::size_t i = 0; i < f.points.size(); ++i) {
    f.points[i].cheapest = cheapest[i];
    f.points[i].quickest = quickest[i];
  }
  return f;
}

}  // namespace rumor::sim
