// How the values of a run file are read, shown to people and printed for the run id: what the kinds of keys are made of
// (run_key_kinds.h).
//
// A read_ function returns what the key wants, such as "wants true or false", or nothing when the value fits.
//
// Thread: pure functions.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/run/run_config.h"
#include "runtime/run/run_key_table.h"

namespace rumor::run_key_kinds {

using Problem = RunKeyProblem;

// In the order of gossip::CodingRule.
extern const std::vector<std::string> link_codings;

Problem read_number(const RunValue& given, double low, double high, double& out);
Problem read_text(const RunValue& given, std::string& out);
Problem read_truth(const RunValue& given, bool& out);
Problem read_choice(const RunValue& given, const std::vector<std::string>& choices, std::string& out);
Problem read_owner(const RunValue& given, std::string& out);
Problem read_router(const RunValue& given, std::string& out);
Problem read_optional(const RunValue& given, double low, double high, std::optional<double>& out);
// The three budget keys: the one that was read last counts. (Two of them in one file: check_budgets.)
Problem read_density(RunConfig& config, const RunValue& given);
Problem read_byte_budget(const RunValue& given, double least, double& out, double& other);
Problem read_in_flight_weight(const RunValue& given, std::optional<double>& out);
Problem read_local_steps(RunConfig& config, const RunValue& given);
Problem read_scope(RunConfig& config, const RunValue& given);
Problem read_emit(RunConfig& config, const RunValue& given);
// "none", "linear FACTOR" or "llama3 FACTOR LOW HIGH CONTEXT", and back.
Problem read_rope_scaling(const RunValue& given, models::RotaryScaling& out);
std::string rope_scaling_text(const models::RotaryScaling& scaling);
// [[share, pixels], ...], and back; exact: for the run id.
Problem read_resolution(const RunValue& given, Resolution& out);
std::string shown_resolution(const Resolution& resolution);
std::string print_resolution(const Resolution& resolution);
Problem read_even(const RunValue& given, std::uint32_t& out);
Problem read_log(RunConfig& config, const RunValue& given);
Problem read_link_coding(RunConfig& config, const RunValue& given);
std::string print_list(const std::vector<std::uint32_t>& list);
// A list of numbers above 0, at most 100, and back; exact: for the run id.
Problem read_weights(const RunValue& given, std::vector<double>& out);
std::string print_weights(const std::vector<double>& list);
// Exact: the run id must not depend on how a number was written or rounded for print.
std::string print_number(double value);
std::string quoted(const std::string& text);

template <class Integer>
Problem read_integer(const RunValue& given, std::int64_t low, std::int64_t high, Integer& out) {
  const auto value = given.exact<std::int64_t>();
  if (!value || *value < low || *value > high) return str("wants a whole number from ", low, " to ", high);
  out = static_cast<Integer>(*value);
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

}  // namespace rumor::run_key_kinds
