// The tables of keys. Most keys are a number within bounds, a text, or one of some words. One function for each kind
// makes the row that reads, shows and prints a member of RunConfig.
#include "runtime/run/run_key_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "gossip/trust/admission.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {

using Problem = RunKeyProblem;
using Row = RunKeyRow;

Problem read_number(const RunValue& given, double low, double high, double& out) {
  const auto value = given.number();
  if (!value || !(*value >= low && *value <= high)) return str("wants a number from ", low, " to ", high);
  out = *value;
  return {};
}

template <class Integer>
Problem read_integer(const RunValue& given, std::int64_t low, std::int64_t high, Integer& out) {
  const auto value = given.exact<std::int64_t>();
  if (!value || *value < low || *value > high) return str("wants a whole number from ", low, " to ", high);
  out = static_cast<Integer>(*value);
  return {};
}

Problem read_text(const RunValue& given, std::string& out) {
  const auto value = given.exact<std::string>();
  if (!value) return "wants a text in quotes";
  out = *value;
  return {};
}

Problem read_truth(const RunValue& given, bool& out) {
  const auto value = given.exact<bool>();
  if (!value) return "wants true or false";
  out = *value;
  return {};
}

Problem read_choice(const RunValue& given, const std::vector<std::string>& choices, std::string& out) {
  std::string all;
  for (const std::string& choice : choices) all += (all.empty() ? "\"" : " or \"") + choice + "\"";
  const auto value = given.exact<std::string>();
  if (!value || std::find(choices.begin(), choices.end(), *value) == choices.end()) return "wants " + all;
  out = *value;
  return {};
}

Problem read_owner(const RunValue& given, std::string& out) {
  const auto value = given.exact<std::string>();
  const auto key = gossip::parse_node_id(value.value_or(""));
  if (!key) return "wants a key of 64 hex digits, as `rumor key show` prints it";
  out = key->hex();
  return {};
}

Problem read_router(const RunValue& given, std::string& out) {
  const std::string router = given.exact<std::string>().value_or("?");
  const bool dotted = router.find_first_not_of("0123456789.") == std::string::npos &&
                      std::count(router.begin(), router.end(), '.') == 3;
  if (!router.empty() && router != "auto" && !dotted)
    return "wants \"auto\" or the router's IPv4 address in quotes; empty for none";
  out = router;
  return {};
}

Problem read_optional(const RunValue& given, double low, double high, std::optional<double>& out) {
  double value = 0;
  if (Problem p = read_number(given, low, high, value); !p.empty()) return p;
  out = value;
  return {};
}

template <class T>
Problem read_list(const RunValue& given, std::vector<T>& out) {
  const std::vector<RunValue>* list = given.list();
  if (list == nullptr) return "wants a list in [ ]";
  std::vector<T> items;
  for (const RunValue& item : *list) {
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
Problem read_density(RunConfig& config, const RunValue& given) {
  double density = 0;
  if (given.exact<std::string>() != "auto")
    if (Problem p = read_number(given, 1e-6, density_max, density); !p.empty()) return p + ", or \"auto\"";
  config.density = density;
  config.bytes_per_update = config.bytes_per_second = 0;
  return {};
}

Problem read_byte_budget(const RunValue& given, double least, double& out, double& other) {
  if (Problem p = read_number(given, least, 1e12, out); !p.empty()) return p;
  other = 0;
  return {};
}

Problem read_scope(RunConfig& config, const RunValue& given) {
  std::string choice;
  if (Problem p = read_choice(given, {"global", "tensor"}, choice); !p.empty()) return p;
  config.scope = choice == "tensor" ? compress::Scope::tensor : compress::Scope::global;
  return {};
}

Problem read_emit(RunConfig& config, const RunValue& given) {
  std::string choice;
  if (Problem p = read_choice(given, {"threshold", "mean"}, choice); !p.empty()) return p;
  config.emit = choice == "mean" ? compress::Emit::mean : compress::Emit::threshold;
  return {};
}

Problem read_even(const RunValue& given, std::uint32_t& out) {
  std::uint32_t count = 0;
  if (Problem p = read_integer(given, 2, 64, count); !p.empty()) return p;
  if (count % 2 != 0) return "wants an even number: two in each cycle through all peers";
  out = count;
  return {};
}

Problem read_log(RunConfig& config, const RunValue& given) {
  std::size_t mib = 0;
  if (Problem p = read_integer(given, 1, std::size_t{1} << 24, mib); !p.empty()) return p;
  config.log_bytes = mib << 20;
  return {};
}

// By gossip::CodingRule.
const std::vector<std::string> link_codings{"auto", "canonical", "adapt", "link"};

Problem read_link_coding(RunConfig& config, const RunValue& given) {
  std::string choice;
  if (const std::string* text = std::get_if<std::string>(&given.is); text != nullptr && *text == "rice") {
    config.old_words = "network.link_coding = \"rice\" is now called \"canonical\"; the old word still works";
    config.link_coding = gossip::CodingRule::canonical;
    return {};
  }
  if (Problem p = read_choice(given, link_codings, choice); !p.empty()) return p;
  const auto at = std::find(link_codings.begin(), link_codings.end(), choice) - link_codings.begin();
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

std::string quoted(const std::string& text) {
  return text.empty() ? "" : str('"', text, '"');
}

template <class T>
std::string shown_list(const std::vector<T>& list) {
  std::string out;
  for (const T& item : list) {
    out += out.empty() ? "[" : ", ";
    if constexpr (std::is_same_v<T, std::string>)
      out += quoted(item);
    else
      out += str(item);
  }
  return out.empty() ? "" : out + "]";
}

// ---- rows ----

using C = RunConfig;

// Whether peers with different values would not fit together.
constexpr bool of_run = true, of_peer = false;

// at(&C::model, &ModelConfig::hidden)(config) is config.model.hidden.
template <class... Path>
auto at(Path... path) {
  return [=](auto& config) -> auto& { return (config .* ... .* path); };
}

template <class Field, class Print>
std::function<std::string(const C&)> printed(bool is_shared, Field field, Print print) {
  if (!is_shared) return nullptr;
  return [=](const C& c) { return print(field(c)); };
}

template <class Field>
Row real(std::string name, double low, double high, Field field, bool is_shared) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_number(n, low, high, field(c)); },
          [=](const C& c) { return str(field(c)); }, printed(is_shared, field, print_number)};
}

template <class Field>
Row whole(std::string name, std::int64_t low, std::int64_t high, Field field, bool is_shared) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_integer(n, low, high, field(c)); },
          [=](const C& c) { return str(field(c)); },
          printed(is_shared, field, [](const auto& value) { return str(value); })};
}

template <class Field>
Row text(std::string name, Field field, bool is_shared, Problem (*read)(const RunValue&, std::string&) = read_text) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read(n, field(c)); },
          [=](const C& c) { return quoted(field(c)); },
          printed(is_shared, field, [](const std::string& value) { return value; })};
}

template <class Field>
Row choice(std::string name, std::vector<std::string> choices, Field field, bool is_shared) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_choice(n, choices, field(c)); },
          [=](const C& c) { return quoted(field(c)); },
          printed(is_shared, field, [](const std::string& value) { return value; })};
}

template <class Field>
Row numbers(std::string name, Field field) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_list(n, field(c)); },
          [=](const C& c) { return shown_list(field(c)); }, printed(of_run, field, print_list)};
}

template <class Field>
Row texts(std::string name, Field field) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_list(n, field(c)); },
          [=](const C& c) { return shown_list(field(c)); }, nullptr};
}

// Not set unless somebody does.
template <class Field>
Row optional(std::string name, double low, double high, Field field) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_optional(n, low, high, field(c)); },
          [=](const C& c) { return field(c) ? str(*field(c)) : ""; }, nullptr};
}

template <class Field>
Row even(std::string name, Field field) {
  return {std::move(name), [=](C& c, const RunValue& n) { return read_even(n, field(c)); },
          [=](const C& c) { return str(field(c)); }, nullptr};
}

// ---- the tables ----

std::vector<Row> model_keys() {
  using M = models::ModelConfig;
  const auto of = [](auto field) { return at(&C::model, field); };
  return {
      text("model.family", of(&M::family), of_run),
      numbers("model.hidden", of(&M::hidden)),
      numbers("model.channels", of(&M::stage_channels)),
      whole("model.blocks", 0, 64, of(&M::blocks), of_run),
      whole("model.pool_every", 1, 64, of(&M::pool_every), of_run),
      whole("model.groups", 0, 4096, of(&M::groups), of_run),
      text("model.weights", at(&C::weights), of_peer),
      whole("model.context", 1, 1 << 16, of(&M::context), of_run),
      whole("model.layers", 1, 1 << 10, of(&M::layers), of_run),
      whole("model.heads", 1, 1 << 10, of(&M::heads), of_run),
      whole("model.embedding", 1, 1 << 16, of(&M::embedding), of_run),
      choice("model.precision", {"fp32", "tf32", "bf16"}, at(&C::precision), of_peer),
  };
}

std::vector<Row> training_keys() {
  using D = models::DataConfig;
  using O = models::OptimizerConfig;
  const auto data = [](auto field) { return at(&C::data, field); };
  const auto of_optimizer = [](auto field) { return at(&C::optimizer, field); };
  return {
      text("run.name", at(&C::name), of_run),
      whole("run.seed", 0, INT64_MAX, at(&C::seed), of_run),
      text("run.owner", at(&C::owner), of_run, read_owner),
      whole("run.samples", 1, samples_unbounded, at(&C::samples), of_run),
      choice("data.kind", {"idx", "cifar10", "synthetic", "text", "tokens"}, data(&D::kind), of_run),
      whole("data.seed", 0, INT64_MAX, data(&D::seed), of_run),
      whole("data.skew", 0, 1000, data(&D::skew), of_run),
      text("data.path", data(&D::path), of_peer),
      choice("optimizer.kind", {"sgd", "momentum", "rmsprop", "adam", "adamw", "adaptive_revision"},
             of_optimizer(&O::kind), of_run),
      real("optimizer.rate", 1e-9, 1e3, at(&C::rate), of_run),
      choice("optimizer.rate_scaling", {"sqrt", "none"}, at(&C::rate_scaling), of_run),
      real("optimizer.warmup", 0, 1, at(&C::schedule, &models::Schedule::warmup), of_run),
      real("optimizer.floor", 0, 1, at(&C::schedule, &models::Schedule::floor), of_run),
      real("optimizer.momentum", 0, 0.9999, of_optimizer(&O::momentum), of_run),
      real("optimizer.beta2", 0, 0.999999, of_optimizer(&O::beta2), of_run),
      real("optimizer.weight_decay", 0, 0.9999, of_optimizer(&O::weight_decay), of_run),
      real("optimizer.clip", 0, 1e9, of_optimizer(&O::clip), of_run),
      whole("optimizer.hogwild", 0, 64, at(&C::hogwild), of_peer),
      whole("optimizer.hogwild_batches", 1, 1024, at(&C::hogwild_batches), of_peer),
      whole("optimizer.batch", 1, 4096, at(&C::batch), of_run),
  };
}

std::vector<Row> exchange_keys() {
  using S = StalenessRules;
  const auto rules = [](auto field) { return at(&C::staleness, field); };
  return {
      choice("exchange.mode", {std::begin(exchange_modes), std::end(exchange_modes)}, at(&C::mode), of_run),
      real("exchange.in_flight_weight", 0, 1, at(&C::in_flight_weight), of_run),
      real("exchange.period_ms", 0, 3.6e6, at(&C::period_ms), of_peer),
      real("exchange.staleness_scale", 0, 4, rules(&S::scale), of_peer),
      real("exchange.brake_from", 0, 1000, rules(&S::brake_from), of_peer),
      whole("exchange.soft_sync", 0, 4096, rules(&S::soft_sync), of_peer),
      whole("exchange.steps_ahead", 0, 1'000'000, rules(&S::bound), of_peer),
      real("exchange.early_share", 0, 1, at(&C::early_share), of_peer),
      whole("exchange.early_peers", 0, 4096, at(&C::early_peers), of_peer),
      real("exchange.early_density", 0.01, 100, at(&C::early_density), of_peer),
  };
}

std::vector<Row> compress_keys() {
  const auto budget = [](const char* name, double least, auto bytes, auto other) {
    return Row{name, [=](C& c, const RunValue& n) { return read_byte_budget(n, least, bytes(c), other(c)); },
               [=](const C& c) { return bytes(c) > 0 ? str(bytes(c)) : ""; }, nullptr};
  };
  return {
      {"compress.density", read_density, [](const C& c) { return c.density > 0 ? str(c.density) : quoted("auto"); },
       nullptr},
      budget("compress.bytes_per_update", 64, at(&C::bytes_per_update), at(&C::bytes_per_second)),
      budget("compress.bytes_per_second", 1, at(&C::bytes_per_second), at(&C::bytes_per_update)),
      {"compress.scope", read_scope,
       [](const C& c) { return quoted(c.scope == compress::Scope::tensor ? "tensor" : "global"); }, nullptr},
      {"compress.follow_rate", [](C& c, const RunValue& n) { return read_truth(n, c.follow_rate); },
       [](const C& c) { return std::string(c.follow_rate ? "true" : "false"); }, nullptr},
      {"compress.emit", read_emit,
       [](const C& c) { return quoted(c.emit == compress::Emit::mean ? "mean" : "threshold"); }, nullptr},
      whole("compress.grid_bits", 8, 30, at(&C::grid_bits), of_run),
  };
}

std::vector<Row> network_keys() {
  return {
      text("network.listen", at(&C::listen), of_peer),
      texts("network.seeds", at(&C::seeds)),
      texts("network.advertise", at(&C::advertise)),
      text("network.map_port", at(&C::map_port), of_peer, read_router),
      text("network.status", at(&C::status), of_peer),
      text("network.status_token", at(&C::status_token), of_peer),
      text("network.events", at(&C::events), of_peer),
      text("network.tensorboard", at(&C::tensorboard), of_peer),
      text("network.allow", at(&C::allow), of_peer),
      text("network.revoke", at(&C::revoke), of_peer),
      text("network.token", at(&C::token), of_peer),
      {"network.link_coding", read_link_coding,
       [](const C& c) { return quoted(link_codings[static_cast<std::size_t>(c.link_coding)]); }, nullptr},
      real("network.up_mbit", 0, 1e6, at(&C::up_mbit), of_peer),
      real("network.down_mbit", 0, 1e6, at(&C::down_mbit), of_peer),
      {"network.log_mib", read_log, [](const C& c) { return str(c.log_bytes >> 20); }, nullptr},
  };
}

// Keys of methods that only the simulator knows, except local_steps.
std::vector<Row> method_keys() {
  using R = RoundRules;
  using S = ServerRules;
  using N = NeighbourRules;
  constexpr std::int64_t most = 1'000'000;
  const auto rounds = [](auto field) { return at(&C::round_rules, field); };
  const auto server = [](auto field) { return at(&C::server_rules, field); };
  const auto others = [](auto field) { return at(&C::neighbour_rules, field); };
  return {
      whole("exchange.local_steps", 1, most, rounds(&R::local_steps), of_peer),
      real("exchange.participation", 1e-6, 1, rounds(&R::participation), of_peer),
      choice("exchange.outer", {"none", "nesterov", "sparse"}, rounds(&R::outer), of_peer),
      optional("exchange.outer_rate", 1e-6, 100, rounds(&R::outer_rate)),
      optional("exchange.outer_momentum", 0, 0.9999, rounds(&R::outer_momentum)),
      real("exchange.penalty", 1e-9, 1e6, rounds(&R::penalty), of_peer),
      whole("exchange.servers", 1, most, server(&S::servers), of_peer),
      whole("exchange.push_every", 1, most, server(&S::push_every), of_peer),
      whole("exchange.fetch_every", 1, most, server(&S::fetch_every), of_peer),
      even("exchange.neighbours", others(&N::neighbours)),
      real("exchange.consensus_rate", 0, 1, others(&N::consensus_rate), of_peer),
      real("exchange.drift_bound", 0, 1e12, others(&N::drift_bound), of_peer),
      whole("exchange.teachers", 1, most, others(&N::teachers), of_peer),
      whole("exchange.refresh_every", 1, most, others(&N::refresh_every), of_peer),
      real("exchange.agreement", 0, 100, others(&N::agreement), of_peer),
  };
}

}  // namespace

const std::vector<RunKeyRow>& run_key_table() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list = model_keys();
    for (std::vector<Row> more :
         std::array{training_keys(), exchange_keys(), compress_keys(), network_keys(), method_keys()})
      for (Row& row : more) list.push_back(std::move(row));
    return list;
  }();
  return rows;
}

}  // namespace rumor
