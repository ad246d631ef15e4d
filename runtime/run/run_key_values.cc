#include "runtime/run/run_key_values.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <locale>
#include <sstream>
#include <utility>

#include "gossip/trust/admission.h"

namespace rumor::run_key_kinds {

Problem read_number(const RunValue& given, double low, double high, double& out) {
  const auto value = given.number();
  if (!value || !(*value >= low && *value <= high)) return str("wants a number from ", low, " to ", high);
  out = *value;
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

Problem read_in_flight_weight(const RunValue& given, std::optional<double>& out) {
  out.reset();
  if (given.exact<std::string>() == "auto") return {};
  double weight = 0;
  if (Problem p = read_number(given, 0, 1, weight); !p.empty()) return p + ", or \"auto\"";
  out = weight;
  return {};
}

Problem read_local_steps(RunConfig& config, const RunValue& given) {
  std::uint32_t steps = 0;
  if (given.exact<std::string>() != "auto")
    if (Problem p = read_integer(given, 1, 1'000'000, steps); !p.empty()) return p + ", or \"auto\"";
  config.round_rules.local_steps = steps;
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

Problem read_rope_scaling(const RunValue& given, models::RotaryScaling& out) {
  constexpr const char* wanted = "wants \"none\", \"linear FACTOR\" or \"llama3 FACTOR LOW HIGH CONTEXT\", such as "
                                 "\"llama3 8 1 4 8192\"";
  const auto value = given.exact<std::string>();
  if (!value) return wanted;
  std::istringstream words(*value);
  words.imbue(std::locale::classic());
  models::RotaryScaling scaling;
  std::string kind, rest;
  words >> kind;
  if (kind == "linear") {
    scaling.kind = models::RotaryScaling::Kind::linear;
    words >> scaling.factor;
  } else if (kind == "llama3") {
    scaling.kind = models::RotaryScaling::Kind::llama3;
    words >> scaling.factor >> scaling.low >> scaling.high >> scaling.original_context;
  } else if (kind != "none") {
    return wanted;
  }
  if (words.fail() || words >> rest) return wanted;
  out = scaling;
  return {};
}

namespace {

// The shortest text that is read as the same number.
std::string shortest(double value) {
  char buffer[32];
  return {buffer, std::to_chars(std::begin(buffer), std::end(buffer), value).ptr};
}

}  // namespace

std::string rope_scaling_text(const models::RotaryScaling& scaling) {
  switch (scaling.kind) {
    case models::RotaryScaling::Kind::none:
      return "none";
    case models::RotaryScaling::Kind::linear:
      return "linear " + shortest(scaling.factor);
    case models::RotaryScaling::Kind::llama3:
      return str("llama3 ", shortest(scaling.factor), " ", shortest(scaling.low), " ", shortest(scaling.high), " ",
                 scaling.original_context);
  }
  return "none";
}

Problem read_resolution(const RunValue& given, Resolution& out) {
  constexpr const char* wanted = "wants a list of [share of the run, pixels a side], such as [[0, 14], [0.5, 28]]";
  const std::vector<RunValue>* list = given.list();
  if (list == nullptr) return wanted;
  Resolution read;
  for (const RunValue& item : *list) {
    const std::vector<RunValue>* pair = item.list();
    Resolution::Phase phase;
    if (pair == nullptr || pair->size() != 2 || !pair->front().number()) return wanted;
    phase.share = *pair->front().number();
    if (Problem p = read_integer(pair->back(), 1, 1 << 15, phase.pixels); !p.empty()) return "in its pairs " + p;
    const Resolution::Phase* before = read.is_on() ? &read.phases.back() : nullptr;
    if (before == nullptr && phase.share != 0) return "wants its first share to be 0, the beginning of the run";
    if (before != nullptr && !(phase.share > before->share && phase.share < 1))
      return str("wants shares that rise and stay below 1, and ", phase.share, " follows ", before->share);
    if (before != nullptr && phase.pixels <= before->pixels)
      return str("wants pixels that rise, and ", phase.pixels, " follows ", before->pixels);
    read.phases.push_back(phase);
  }
  out = std::move(read);
  return {};
}

std::string shown_resolution(const Resolution& resolution) {
  std::string out;
  for (const Resolution::Phase& phase : resolution.phases)
    out += str(out.empty() ? "[" : ", ", "[", shortest(phase.share), ", ", phase.pixels, "]");
  return out.empty() ? "" : out + "]";
}

std::string print_resolution(const Resolution& resolution) {
  std::string out;
  for (const Resolution::Phase& phase : resolution.phases)
    out += str(print_number(phase.share), " ", phase.pixels, ",");
  return out;
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

Problem read_weights(const RunValue& given, std::vector<double>& out) {
  constexpr const char* wanted = "wants a list of numbers above 0 and at most 100, such as [0.3, 0.3]";
  const std::vector<RunValue>* list = given.list();
  if (list == nullptr) return wanted;
  std::vector<double> weights;
  for (const RunValue& item : *list) {
    const auto weight = item.number();
    if (!weight || !(*weight > 0 && *weight <= 100)) return wanted;
    weights.push_back(*weight);
  }
  out = std::move(weights);
  return {};
}

std::string print_weights(const std::vector<double>& list) {
  std::string out;
  for (const double weight : list) out += print_number(weight) + ",";
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

}  // namespace rumor::run_key_kinds
