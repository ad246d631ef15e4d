#include "runtime/sim/cluster/fault_plan.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text.h"
#include "runtime/run/toml_table.h"

namespace rumor::sim {

namespace {

constexpr double seconds_max = 1e7;

std::optional<PlannedFault::Kind> kind_named(std::string_view name) {
  if (name == "kill") return PlannedFault::Kind::kill;
  if (name == "partition") return PlannedFault::Kind::partition;
  if (name == "reset") return PlannedFault::Kind::reset;
  return std::nullopt;
}

// Empty when it fits.
std::string read_nodes(const toml::node& value, std::size_t cluster_nodes, PlannedFault& fault) {
  const std::string wanted = str("nodes wants numbers of nodes, 0 to ", cluster_nodes - 1, ": [0, 1]");
  const toml::array* list = value.as_array();
  if (list == nullptr || list->empty()) return wanted;
  for (const toml::node& entry : *list) {
    const auto node = entry.value<std::int64_t>();
    if (!node || *node < 0 || static_cast<std::uint64_t>(*node) >= cluster_nodes) return wanted;
    const auto number = static_cast<std::size_t>(*node);
    if (std::find(fault.nodes.begin(), fault.nodes.end(), number) == fault.nodes.end())
      fault.nodes.push_back(number);
  }
  return "";
}

std::string read_key(std::string_view key, const toml::node& value, std::size_t cluster_nodes,
                     PlannedFault& fault) {
  if (key == "kind") {
    const auto kind = kind_named(value.value_or(std::string_view{}));
    if (!kind) return "kind is one of \"kill\", \"partition\", \"reset\"";
    fault.kind = *kind;
    return "";
  }
  if (key == "nodes") return read_nodes(value, cluster_nodes, fault);
  if (key == "keeps_disk") {
    const auto keeps = value.value<bool>();
    fault.keeps_disk = keeps.value_or(false);
    return keeps ? "" : "keeps_disk wants true or false";
  }
  if (key != "at_s" && key != "lasts_s" && key != "every_s")
    return str(std::string(key), " is not a key of a fault; known: kind, at_s, lasts_s, nodes, every_s, keeps_disk");
  const auto seconds = value.value<double>();
  const double least = key == "at_s" ? 0 : 0.001;
  if (!seconds || !(*seconds >= least) || *seconds > seconds_max)
    return str(std::string(key), " wants seconds, ", least, " to ", seconds_max);
  (key == "at_s" ? fault.at : key == "lasts_s" ? fault.lasts : fault.every) = from_seconds(*seconds);
  return "";
}

std::string check(const PlannedFault& fault, std::size_t cluster_nodes) {
  if (fault.nodes.empty()) return "nodes is missing: which nodes does it strike?";
  const bool lasting = fault.kind != PlannedFault::Kind::reset;
  if (lasting && fault.lasts == Duration{0}) return "lasts_s is missing: for how long?";
  if (!lasting && fault.lasts != Duration{0}) return "a reset is over at once: leave out lasts_s";
  if (fault.keeps_disk && fault.kind != PlannedFault::Kind::kill)
    return "keeps_disk says how a killed node comes back; leave it out";
  if (fault.kind == PlannedFault::Kind::partition && fault.nodes.size() == cluster_nodes)
    return "a partition with all nodes on one side parts nobody: leave some out";
  if (lasting && fault.every != Duration{0} && fault.every <= fault.lasts)
    return "every_s must be longer than lasts_s";
  return "";
}

}  // namespace

Result<std::vector<PlannedFault>> parse_fault_plan(std::string_view text, const std::string& source,
                                                   std::size_t cluster_nodes) {
  const Result<toml::table> parsed = parse_toml(text, source);
  if (!parsed) return parsed.error();
  const toml::table& table = *parsed;
  const toml::array* list = table["fault"].as_array();
  if (list == nullptr || list->empty() || table.size() != 1)
    return Error{Errc::usage, source + ": a fault file is a list of [[fault]] tables, and nothing else"};
  std::vector<PlannedFault> plan;
  for (const toml::node& entry : *list) {
    const toml::table* keys = entry.as_table();
    PlannedFault fault;
    std::string wrong = keys == nullptr ? "it is no table" : "";
    if (keys != nullptr && !keys->contains("kind")) wrong = "kind is missing";
    if (keys != nullptr) {
      for (auto&& [key, value] : *keys)
        if (wrong.empty()) wrong = read_key(std::string_view{key}, value, cluster_nodes, fault);
    }
    if (wrong.empty()) wrong = check(fault, cluster_nodes);
    if (!wrong.empty())
      return Error{Errc::usage, str(source, ": line ", entry.source().begin.line, ": fault ", plan.size() + 1,
                                    ": ", wrong)};
    plan.push_back(std::move(fault));
  }
  return plan;
}

}  // namespace rumor::sim
