#include "runtime/run_config.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/run_config_keys.h"

namespace rumor {

namespace {

using Node = toml::node;

std::string_view last_part(std::string_view name) {
  return name.substr(name.find('.') + 1);
}

Error unknown_key(const std::string& where, const std::string& name) {
  std::vector<std::string> known;
  for (const RunKey& key : run_keys()) known.push_back(key.name);
  std::string hint;
  for (const RunKey& key : run_keys())  // perhaps the right key in the wrong section
    if (last_part(key.name) == last_part(name)) hint = key.name;
  if (hint.empty()) hint = nearest(name, known);
  if (hint.empty()) hint = known.front() + " and others: see `rumor peer --help`";
  return Error{Errc::usage, str(where, "unknown key ", name, "; did you mean ", hint, "?")};
}

Result<void> set_key(RunConfig& config, const std::string& name, const Node& node, const std::string& where) {
  for (const RunKey& key : run_keys()) {
    if (key.name != name) continue;
    if (const Problem problem = key.read(config, node); !problem.empty())
      return Error{Errc::usage, str(where, name, " ", problem)};
    return {};
  }
  return unknown_key(where, name);
}

// A file says once how much an update may cost.
Result<void> check_budgets(const toml::table& table, const std::string& source) {
  const toml::table* keys = table["compress"].as_table();
  if (keys == nullptr) return {};
  std::string first;
  for (const char* key : {"density", "bytes_per_update", "bytes_per_second"}) {
    if (!keys->contains(key)) continue;
    if (!first.empty())
      return Error{Errc::usage, str(source, ": line ", keys->get(key)->source().begin.line, ": compress.", key,
                                    " and compress.", first, " exclude each other; keep one of them")};
    first = key;
  }
  return {};
}

Result<void> check_together(const RunConfig& config, const std::string& where) {
  if (config.follow_rate && config.has_byte_budget())
    return Error{Errc::usage, str(where, "compress.follow_rate moves a density, but the budget is in bytes; ",
                                  "set compress.density or leave follow_rate out")};
  if (config.early_density != 1 && config.has_byte_budget())
    return Error{Errc::usage, str(where, "exchange.early_density multiplies a density, but the budget is in bytes; ",
                                  "set compress.density or leave early_density out")};
  if (config.hogwild > 0 && config.mode != "broadcast")
    return Error{Errc::usage, str(where, "optimizer.hogwild is of a peer that broadcasts; exchange.mode = \"",
                                  config.mode, "\" has no use for it, leave one of them out")};
  if (config.hogwild > 0 && config.optimizer.kind == "adaptive_revision")
    return Error{Errc::usage, str(where, "optimizer.kind = \"adaptive_revision\" revises one step after another, and "
                                  "the workers of optimizer.hogwild take theirs at once; choose another kind, such "
                                  "as \"rmsprop\", or leave hogwild out")};
  if (config.mode == "broadcast" && config.samples < config.batch)
    return Error{Errc::usage, str(where, "run.samples (", config.samples, ") is less than one batch (",
                                  config.batch, ")")};
  return {};
}

}  // namespace

std::string RunConfig::warning() const {
  if (early_share == 0 && (early_peers > 0 || early_density != 1))
    return "exchange.early_peers and early_density do nothing without exchange.early_share, the share of run.samples "
           "that is early, such as 0.1";
  const bool has_momentum = optimizer.kind == "momentum" || optimizer.kind == "adam" || optimizer.kind == "adamw";
  if (mode != "broadcast" || !has_momentum || optimizer.momentum == 0) return {};
  return str("optimizer.momentum = ", optimizer.momentum, " hurts sparse broadcast: the residual's delay already acts "
             "as momentum, and more of it costs accuracy; set optimizer.momentum = 0, or "
             "optimizer.kind to ", optimizer.kind == "momentum" ? "sgd" : "rmsprop");
}

double RunConfig::density_for(std::size_t peers) const {
  if (has_byte_budget()) return 0;
  const double rounds =
      static_cast<double>(samples) / (static_cast<double>(batch) * static_cast<double>(peers));
  const double automatic = std::clamp(25.0 / (static_cast<double>(peers) * std::max(rounds, 1.0)), 1e-4, 1e-2);
  const double of_a_batch = density > 0 ? density : automatic;
  return std::min(of_a_batch * batches(), density_max);
}

double RunConfig::density_at(std::size_t peers, double progress) const {
  const double mean = std::min(density_for(peers) * (is_early(progress) ? early_density : 1.0), density_max);
  if (!follow_rate) return mean;
  constexpr int points = 256;
  double factors = 0;
  for (int point = 0; point < points; ++point) factors += schedule.factor((point + 0.5) / points);
  if (factors == 0) return mean;
  return std::clamp(mean * schedule.factor(progress) * points / factors, 1e-9, density_max);
}

double RunConfig::rate_for(std::size_t peers, double progress) const {
  const double count = static_cast<double>(std::max<std::size_t>(peers, 1));
  const double total = rate_scaling == "sqrt" ? rate * std::sqrt(std::min(count, 16.0) / 4.0) : rate;
  return total * schedule.factor(progress) / count;
}

Result<RunConfig> parse_run_config(std::string_view text, const std::string& source) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Error{Errc::usage, str(source, ": line ", error.source().begin.line, ": ", error.description())};
  }
  if (auto checked = check_budgets(table, source); !checked) return checked.error();
  RunConfig config;
  for (auto&& [section, content] : table) {
    const std::string name{std::string_view{section}};
    const toml::table* keys = content.as_table();
    if (keys == nullptr)
      return Error{Errc::usage,
                   str(source, ": line ", content.source().begin.line, ": ", name,
                       " stands outside a section; put it under one such as [run] or [compress]")};
    for (auto&& [key, value] : *keys) {
      const std::string where = str(source, ": line ", value.source().begin.line, ": ");
      if (auto set = set_key(config, name + "." + std::string{std::string_view{key}}, value, where); !set)
        return set.error();
    }
  }
  if (auto checked = check_together(config, source + ": "); !checked) return checked.error();
  return config;
}

Result<void> override_run_config(RunConfig& config, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{Errc::usage,
                 str("--set ", assignment, " wants section.key=value, such as compress.density=0.003")};
  const std::string name = assignment.substr(0, equals);
  const std::string value = assignment.substr(equals + 1);
  const std::string where = "--set: ";
  for (const std::string& form : {value, "\"" + value + "\""}) {
    try {
      const toml::table table = toml::parse("value = " + form);
      if (const Node* node = table.get("value")) {
        if (auto set = set_key(config, name, *node, where); !set) return set.error();
        return check_together(config, where);
      }
    } catch (const toml::parse_error&) {
      continue;  // not TOML as it stands: try it as a text
    }
  }
  return Error{Errc::usage, str(where, "cannot read the value of ", assignment)};
}

RunId run_id(const RunConfig& config, const ParamLayout& layout, const models::StartWeights* start) {
  ByteWriter out;
  out.text("rumor-run-1");
  for (const RunKey& key : run_keys()) {
    if (!key.shared) continue;
    if (key.name == "run.owner" && config.owner.empty()) continue;  // a run without one
    out.text(key.name);
    out.text(key.shared(config));
  }
  out.raw(layout.hash().view());
  if (start != nullptr) out.raw(start->hash.view());
  return RunId::from(sha256(out.bytes()).view().first(RunId::size));
}

}  // namespace rumor
