// The run file: its keys, how each is read from TOML, and how the shared ones are printed for the run id.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include <toml++/toml.h>

#include "gossip/admission.h"
#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/run_config.h"

namespace rumor {

namespace {

using Node = toml::node;
using Problem = std::string;  // empty: fine

// One key: how to read it, and (for shared keys) how to print it canonically.
struct Key {
  std::string name;
  std::function<Problem(RunConfig&, const Node&)> read;
  std::function<std::string(const RunConfig&)> shared;  // null: not part of the run id
};

Problem read_number(const Node& node, double low, double high, double& out) {
  const auto value = node.value<double>();
  if (!value || !(*value >= low && *value <= high)) return str("wants a number from ", low, " to ", high);
  out = *value;
  return {};
}

template <class Integer>
Problem read_integer(const Node& node, std::int64_t low, std::int64_t high, Integer& out) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < low || *value > high) return str("wants a whole number from ", low, " to ", high);
  out = static_cast<Integer>(*value);
  return {};
}

Problem read_text(const Node& node, std::string& out) {
  const auto value = node.value_exact<std::string>();
  if (!value) return "wants a text in quotes";
  out = *value;
  return {};
}

Problem read_truth(const Node& node, bool& out) {
  const auto value = node.value_exact<bool>();
  if (!value) return "wants true or false";
  out = *value;
  return {};
}

Problem read_choice(const Node& node, const std::vector<std::string>& choices, std::string& out) {
  std::string all;
  for (const std::string& choice : choices) all += (all.empty() ? "\"" : " or \"") + choice + "\"";
  const auto value = node.value_exact<std::string>();
  if (!value || std::find(choices.begin(), choices.end(), *value) == choices.end()) return "wants " + all;
  out = *value;
  return {};
}

Problem read_owner(const Node& node, std::string& out) {
  const auto value = node.value_exact<std::string>();
  const auto key = gossip::parse_node_id(value.value_or(""));
  if (!key) return "wants a key of 64 hex digits, as `rumor key show` prints it";
  out = key->hex();
  return {};
}

Problem read_optional(const Node& node, double low, double high, std::optional<double>& out) {
  double value = 0;
  if (Problem p = read_number(node, low, high, value); !p.empty()) return p;
  out = value;
  return {};
}

template <class T>
Problem read_list(const Node& node, std::vector<T>& out) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return "wants a list in [ ]";
  std::vector<T> items;
  for (const Node& item : *array) {
    if constexpr (std::is_same_v<T, std::string>) {
      std::string text;
      if (Problem p = read_text(item, text); !p.empty()) return "wants a list of texts in quotes";
      items.push_back(text);
    } else {
      T number{};
      if (Problem p = read_integer(item, 1, 1 << 20, number); !p.empty()) return "in its list " + p;
      items.push_back(number);
    }
  }
  out = std::move(items);
  return {};
}

// The three budget keys: the one that was read last counts. (Two of them in one file: check_budgets.)
Problem read_density(RunConfig& config, const Node& node) {
  double density = 0;
  if (node.value_exact<std::string>() != "auto")
    if (Problem p = read_number(node, 1e-6, density_max, density); !p.empty()) return p + ", or \"auto\"";
  config.density = density;
  config.bytes_per_update = config.bytes_per_second = 0;
  return {};
}

Problem read_byte_budget(const Node& node, double least, double& out, double& other) {
  if (Problem p = read_number(node, least, 1e12, out); !p.empty()) return p;
  other = 0;
  return {};
}

Problem read_scope(RunConfig& config, const Node& node) {
  std::string choice;
  if (Problem p = read_choice(node, {"global", "tensor"}, choice); !p.empty()) return p;
  config.scope = choice == "tensor" ? compress::Scope::tensor : compress::Scope::global;
  return {};
}

Problem read_emit(RunConfig& config, const Node& node) {
  std::string choice;
  if (Problem p = read_choice(node, {"threshold", "mean"}, choice); !p.empty()) return p;
  config.emit = choice == "mean" ? compress::Emit::mean : compress::Emit::threshold;
  return {};
}

Problem read_even(const Node& node, std::uint32_t& out) {
  std::uint32_t count = 0;
  if (Problem p = read_integer(node, 2, 64, count); !p.empty()) return p;
  if (count % 2 != 0) return "wants an even number: two in each cycle through all peers";
  out = count;
  return {};
}

Problem read_log(RunConfig& config, const Node& node) {
  std::size_t mib = 0;
  if (Problem p = read_integer(node, 1, std::size_t{1} << 24, mib); !p.empty()) return p;
  config.log_bytes = mib << 20;
  return {};
}

Problem read_link_coding(RunConfig& config, const Node& node) {
  const std::vector<std::string> choices{"auto", "rice", "adapt", "link"};
  std::string choice;
  if (Problem p = read_choice(node, choices, choice); !p.empty()) return p;
  const auto at = std::find(choices.begin(), choices.end(), choice) - choices.begin();
  config.link_coding = static_cast<gossip::CodingRule>(at);
  return {};
}

std::string print_list(const std::vector<std::uint32_t>& list) {
  std::string out;
  for (std::uint32_t item : list) out += str(item, ",");
  return out;
}

// Exact: the run id must not depend on how a number was written or rounded for print.
std::string print_number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%a", value);
  return buffer;
}

using C = RunConfig;

std::vector<Key> model_keys() {
  return {
      {"model.family", [](C& c, const Node& n) { return read_text(n, c.model.family); },
       [](const C& c) { return c.model.family; }},
      {"model.hidden", [](C& c, const Node& n) { return read_list(n, c.model.hidden); },
       [](const C& c) { return print_list(c.model.hidden); }},
      {"model.channels", [](C& c, const Node& n) { return read_list(n, c.model.stage_channels); },
       [](const C& c) { return print_list(c.model.stage_channels); }},
      {"model.blocks", [](C& c, const Node& n) { return read_integer(n, 0, 64, c.model.blocks); },
       [](const C& c) { return str(c.model.blocks); }},
      {"model.pool_every", [](C& c, const Node& n) { return read_integer(n, 1, 64, c.model.pool_every); },
       [](const C& c) { return str(c.model.pool_every); }},
      {"model.groups", [](C& c, const Node& n) { return read_integer(n, 0, 4096, c.model.groups); },
       [](const C& c) { return str(c.model.groups); }},
      {"model.weights", [](C& c, const Node& n) { return read_text(n, c.weights); }, nullptr},
      {"model.context", [](C& c, const Node& n) { return read_integer(n, 1, 1 << 16, c.model.context); },
       [](const C& c) { return str(c.model.context); }},
      {"model.layers", [](C& c, const Node& n) { return read_integer(n, 1, 1 << 10, c.model.layers); },
       [](const C& c) { return str(c.model.layers); }},
      {"model.heads", [](C& c, const Node& n) { return read_integer(n, 1, 1 << 10, c.model.heads); },
       [](const C& c) { return str(c.model.heads); }},
      {"model.embedding", [](C& c, const Node& n) { return read_integer(n, 1, 1 << 16, c.model.embedding); },
       [](const C& c) { return str(c.model.embedding); }},
  };
}

std::vector<Key> training_keys() {
  return {
      {"run.name", [](C& c, const Node& n) { return read_text(n, c.name); },
       [](const C& c) { return c.name; }},
      {"run.seed", [](C& c, const Node& n) { return read_integer(n, 0, INT64_MAX, c.seed); },
       [](const C& c) { return str(c.seed); }},
      {"run.owner", [](C& c, const Node& n) { return read_owner(n, c.owner); },
       [](const C& c) { return c.owner; }},
      {"run.samples",
       [](C& c, const Node& n) { return read_integer(n, 1, samples_unbounded, c.samples); },
       [](const C& c) { return str(c.samples); }},
      {"data.kind",
       [](C& c, const Node& n) {
         return read_choice(n, {"idx", "cifar10", "synthetic", "text", "tokens"}, c.data.kind);
       },
       [](const C& c) { return c.data.kind; }},
      {"data.seed", [](C& c, const Node& n) { return read_integer(n, 0, INT64_MAX, c.data.seed); },
       [](const C& c) { return str(c.data.seed); }},
      {"data.skew", [](C& c, const Node& n) { return read_integer(n, 0, 1000, c.data.skew); },
       [](const C& c) { return str(c.data.skew); }},
      {"data.path", [](C& c, const Node& n) { return read_text(n, c.data.path); }, nullptr},
      {"optimizer.kind",
       [](C& c, const Node& n) {
         return read_choice(n, {"sgd", "momentum", "rmsprop", "adam", "adamw", "adaptive_revision"}, c.optimizer.kind);
       },
       [](const C& c) { return c.optimizer.kind; }},
      {"optimizer.rate", [](C& c, const Node& n) { return read_number(n, 1e-9, 1e3, c.rate); },
       [](const C& c) { return print_number(c.rate); }},
      {"optimizer.rate_scaling",
       [](C& c, const Node& n) {
         return read_choice(n, {"sqrt", "none"}, c.rate_scaling);
       },
       [](const C& c) { return c.rate_scaling; }},
      {"optimizer.warmup", [](C& c, const Node& n) { return read_number(n, 0, 1, c.schedule.warmup); },
       [](const C& c) { return print_number(c.schedule.warmup); }},
      {"optimizer.floor", [](C& c, const Node& n) { return read_number(n, 0, 1, c.schedule.floor); },
       [](const C& c) { return print_number(c.schedule.floor); }},
      {"optimizer.momentum",
       [](C& c, const Node& n) { return read_number(n, 0, 0.9999, c.optimizer.momentum); },
       [](const C& c) { return print_number(c.optimizer.momentum); }},
      {"optimizer.beta2", [](C& c, const Node& n) { return read_number(n, 0, 0.999999, c.optimizer.beta2); },
       [](const C& c) { return print_number(c.optimizer.beta2); }},
      {"optimizer.weight_decay",
       [](C& c, const Node& n) { return read_number(n, 0, 0.9999, c.optimizer.weight_decay); },
       [](const C& c) { return print_number(c.optimizer.weight_decay); }},
      {"optimizer.clip", [](C& c, const Node& n) { return read_number(n, 0, 1e9, c.optimizer.clip); },
       [](const C& c) { return print_number(c.optimizer.clip); }},
      {"optimizer.hogwild", [](C& c, const Node& n) { return read_integer(n, 0, 64, c.hogwild); }, nullptr},
      {"optimizer.hogwild_batches",
       [](C& c, const Node& n) { return read_integer(n, 1, 1024, c.hogwild_batches); }, nullptr},
      {"optimizer.batch", [](C& c, const Node& n) { return read_integer(n, 1, 4096, c.batch); },
       [](const C& c) { return str(c.batch); }},
  };
}

std::vector<Key> exchange_keys() {
  return {
      {"exchange.mode",
       [](C& c, const Node& n) {
         return read_choice(n, {std::begin(exchange_modes), std::end(exchange_modes)}, c.mode);
       },
       [](const C& c) { return c.mode; }},
      {"exchange.in_flight_weight",
       [](C& c, const Node& n) { return read_number(n, 0, 1, c.in_flight_weight); },
       [](const C& c) { return print_number(c.in_flight_weight); }},
      {"exchange.period_ms", [](C& c, const Node& n) { return read_number(n, 0, 3.6e6, c.period_ms); },
       nullptr},
      {"exchange.staleness_scale", [](C& c, const Node& n) { return read_number(n, 0, 4, c.staleness.scale); },
       nullptr},
      {"exchange.brake_from", [](C& c, const Node& n) { return read_number(n, 0, 1000, c.staleness.brake_from); },
       nullptr},
      {"exchange.soft_sync", [](C& c, const Node& n) { return read_integer(n, 0, 4096, c.staleness.soft_sync); },
       nullptr},
      {"exchange.steps_ahead", [](C& c, const Node& n) { return read_integer(n, 0, 1'000'000, c.staleness.bound); },
       nullptr},
      {"exchange.early_share", [](C& c, const Node& n) { return read_number(n, 0, 1, c.early_share); }, nullptr},
      {"exchange.early_peers", [](C& c, const Node& n) { return read_integer(n, 0, 4096, c.early_peers); }, nullptr},
      {"exchange.early_density", [](C& c, const Node& n) { return read_number(n, 0.01, 100, c.early_density); },
       nullptr},
      {"compress.density", read_density, nullptr},
      {"compress.bytes_per_update",
       [](C& c, const Node& n) { return read_byte_budget(n, 64, c.bytes_per_update, c.bytes_per_second); },
       nullptr},
      {"compress.bytes_per_second",
       [](C& c, const Node& n) { return read_byte_budget(n, 1, c.bytes_per_second, c.bytes_per_update); },
       nullptr},
      {"compress.scope", read_scope, nullptr},
      {"compress.follow_rate", [](C& c, const Node& n) { return read_truth(n, c.follow_rate); }, nullptr},
      {"compress.emit", read_emit, nullptr},
      {"compress.grid_bits", [](C& c, const Node& n) { return read_integer(n, 8, 30, c.grid_bits); },
       [](const C& c) { return str(c.grid_bits); }},
      {"network.listen", [](C& c, const Node& n) { return read_text(n, c.listen); }, nullptr},
      {"network.seeds", [](C& c, const Node& n) { return read_list(n, c.seeds); }, nullptr},
      {"network.advertise", [](C& c, const Node& n) { return read_list(n, c.advertise); }, nullptr},
      {"network.status", [](C& c, const Node& n) { return read_text(n, c.status); }, nullptr},
      {"network.status_token", [](C& c, const Node& n) { return read_text(n, c.status_token); }, nullptr},
      {"network.events", [](C& c, const Node& n) { return read_text(n, c.events); }, nullptr},
      {"network.tensorboard", [](C& c, const Node& n) { return read_text(n, c.tensorboard); }, nullptr},
      {"network.allow", [](C& c, const Node& n) { return read_text(n, c.allow); }, nullptr},
      {"network.revoke", [](C& c, const Node& n) { return read_text(n, c.revoke); }, nullptr},
      {"network.token", [](C& c, const Node& n) { return read_text(n, c.token); }, nullptr},
      {"network.link_coding", read_link_coding, nullptr},
      {"network.up_mbit", [](C& c, const Node& n) { return read_number(n, 0, 1e6, c.up_mbit); }, nullptr},
      {"network.down_mbit", [](C& c, const Node& n) { return read_number(n, 0, 1e6, c.down_mbit); }, nullptr},
      {"network.log_mib", read_log, nullptr},
  };
}

// Of ways that only the simulator knows.
std::vector<Key> method_keys() {
  const auto steps = [](std::string name, auto field) {
    return Key{std::move(name), [field](C& c, const Node& n) { return read_integer(n, 1, 1'000'000, field(c)); },
               nullptr};
  };
  return {
      steps("exchange.local_steps", [](C& c) -> std::uint32_t& { return c.round_rules.local_steps; }),
      {"exchange.participation",
       [](C& c, const Node& n) { return read_number(n, 1e-6, 1, c.round_rules.participation); }, nullptr},
      {"exchange.outer",
       [](C& c, const Node& n) { return read_choice(n, {"none", "nesterov", "sparse"}, c.round_rules.outer); },
       nullptr},
      {"exchange.outer_rate",
       [](C& c, const Node& n) { return read_optional(n, 1e-6, 100, c.round_rules.outer_rate); }, nullptr},
      {"exchange.outer_momentum",
       [](C& c, const Node& n) { return read_optional(n, 0, 0.9999, c.round_rules.outer_momentum); }, nullptr},
      {"exchange.penalty", [](C& c, const Node& n) { return read_number(n, 1e-9, 1e6, c.round_rules.penalty); },
       nullptr},
      steps("exchange.servers", [](C& c) -> std::uint32_t& { return c.server_rules.servers; }),
      steps("exchange.push_every", [](C& c) -> std::uint32_t& { return c.server_rules.push_every; }),
      steps("exchange.fetch_every", [](C& c) -> std::uint32_t& { return c.server_rules.fetch_every; }),
      {"exchange.neighbours", [](C& c, const Node& n) { return read_even(n, c.neighbour_rules.neighbours); }, nullptr},
      {"exchange.consensus_rate",
       [](C& c, const Node& n) { return read_number(n, 0, 1, c.neighbour_rules.consensus_rate); }, nullptr},
      {"exchange.drift_bound",
       [](C& c, const Node& n) { return read_number(n, 0, 1e12, c.neighbour_rules.drift_bound); }, nullptr},
      {"exchange.teachers", [](C& c, const Node& n) { return read_even(n, c.neighbour_rules.teachers); }, nullptr},
      steps("exchange.refresh_every", [](C& c) -> std::uint32_t& { return c.neighbour_rules.refresh_every; }),
      {"exchange.agreement", [](C& c, const Node& n) { return read_number(n, 0, 100, c.neighbour_rules.agreement); },
       nullptr},
  };
}

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> list = model_keys();
    for (std::vector<Key> more : std::array{training_keys(), exchange_keys(), method_keys()})
      for (Key& key : more) list.push_back(std::move(key));
    return list;
  }();
  return keys;
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.find('.') + 1);
}

Error unknown_key(const std::string& where, const std::string& name) {
  std::vector<std::string> known;
  for (const Key& key : all_keys()) known.push_back(key.name);
  std::string hint;
  for (const Key& key : all_keys())  // perhaps the right key in the wrong section
    if (last_part(key.name) == last_part(name)) hint = key.name;
  if (hint.empty()) hint = nearest(name, known);
  if (hint.empty()) hint = known.front() + " and others: see `rumor peer --help`";
  return Error{Errc::usage, str(where, "unknown key ", name, "; did you mean ", hint, "?")};
}

Result<void> set_key(RunConfig& config, const std::string& name, const Node& node, const std::string& where) {
  for (const Key& key : all_keys()) {
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
  if (config.hogwild > 0 && config.round_rules.local_steps > 1)
    return Error{Errc::usage, str(where, "optimizer.hogwild = ", config.hogwild, " makes several mini-batches a step ",
                                  "already, optimizer.hogwild_batches of them; leave exchange.local_steps out")};
  if (config.mode == "broadcast" && config.round_rules.local_steps > 1024)
    return Error{Errc::usage, str(where, "exchange.local_steps = ", config.round_rules.local_steps, " is more than an ",
                                  "update may have behind it, 1024")};
  if (config.mode == "broadcast" && config.batches() > 1 && config.optimizer.kind == "adaptive_revision")
    return Error{Errc::usage, str(where, "optimizer.kind = \"adaptive_revision\" revises one step after another, and "
                                  "optimizer.hogwild and exchange.local_steps take several at once; choose another "
                                  "kind, such as \"rmsprop\", or leave these out")};
  if (config.mode == "broadcast" && config.samples < config.batch)
    return Error{Errc::usage, str(where, "run.samples (", config.samples, ") is less than one batch (",
                                  config.batch, ")")};
  return {};
}

}  // namespace

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

// What a key wants is what it says to a value that nothing wants.
std::vector<RunKey> run_keys() {
  const toml::table unwanted;
  std::vector<RunKey> list;
  for (const Key& key : all_keys()) {
    RunConfig ignored;
    std::string wants = key.read(ignored, unwanted);
    if (wants.starts_with("wants ")) wants.erase(0, 6);
    list.push_back({key.name, std::move(wants), key.shared != nullptr});
  }
  std::stable_sort(list.begin(), list.end(), [](const RunKey& a, const RunKey& b) {
    return a.name.substr(0, a.name.find('.')) < b.name.substr(0, b.name.find('.'));
  });
  return list;
}

RunId run_id(const RunConfig& config, const ParamLayout& layout, const models::StartWeights* start) {
  ByteWriter out;
  out.text("rumor-run-1");
  for (const Key& key : all_keys()) {
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
