// The kinds of run file keys: a number within bounds, a text, one of some words. From the member of RunConfig that a
// key sets, a kind makes how the key is read, shown and printed. FIELD(model.layers) names such a member.
//
// Thread: pure functions. For run_key_table.cc alone.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/run/run_key_values.h"

// A function from a RunConfig to one of its members.
#define FIELD(path) [](auto& config) -> auto& { return config.path; }

namespace rumor::run_key_kinds {

// of_run: peers with different values do not fit together, so the key is part of the run id. of_peer: each peer's own
// choice.
enum class Scope { of_run, of_peer };
using enum Scope;

struct Kind {
  std::function<Problem(RunConfig&, const RunValue&)> read;
  std::function<std::string(const RunConfig&)> shown;    // as in a run file; empty: not set
  std::function<std::string(const RunConfig&)> printed;  // exactly, for the run id; null where no such key is shared
};

inline RunKeyRow row(std::string name, Scope scope, std::string_view help, Kind kind) {
  return {std::move(name), help, std::move(kind.read), std::move(kind.shown),
          scope == of_run ? std::move(kind.printed) : nullptr};
}

template <class Field>
Kind real(double low, double high, Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_number(given, low, high, field(c)); },
          [=](const RunConfig& c) { return str(field(c)); },
          [=](const RunConfig& c) { return print_number(field(c)); }};
}

template <class Field>
Kind whole(std::int64_t low, std::int64_t high, Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_integer(given, low, high, field(c)); },
          [=](const RunConfig& c) { return str(field(c)); }, [=](const RunConfig& c) { return str(field(c)); }};
}

template <class Field>
Kind truth(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_truth(given, field(c)); },
          [=](const RunConfig& c) { return std::string(field(c) ? "true" : "false"); },
          [=](const RunConfig& c) { return std::string(field(c) ? "true" : "false"); }};
}

template <class Field>
Kind rope_scaling(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_rope_scaling(given, field(c)); },
          [=](const RunConfig& c) { return quoted(rope_scaling_text(field(c))); },
          [=](const RunConfig& c) { return rope_scaling_text(field(c)); }};
}

template <class Field>
Kind text(Field field, Problem (*read)(const RunValue&, std::string&) = read_text) {
  return {[=](RunConfig& c, const RunValue& given) { return read(given, field(c)); },
          [=](const RunConfig& c) { return quoted(field(c)); }, [=](const RunConfig& c) { return field(c); }};
}

template <class Field>
Kind choice(std::vector<std::string> choices, Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_choice(given, choices, field(c)); },
          [=](const RunConfig& c) { return quoted(field(c)); }, [=](const RunConfig& c) { return field(c); }};
}

template <class Field>
Kind numbers(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_list(given, field(c)); },
          [=](const RunConfig& c) { return shown_list(field(c)); },
          [=](const RunConfig& c) { return print_list(field(c)); }};
}

// Numbers above 0, at most 100.
template <class Field>
Kind weights(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_weights(given, field(c)); },
          [=](const RunConfig& c) { return shown_list(field(c)); },
          [=](const RunConfig& c) { return print_weights(field(c)); }};
}

template <class Field>
Kind texts(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_list(given, field(c)); },
          [=](const RunConfig& c) { return shown_list(field(c)); }, nullptr};
}

// A number that has no value unless the run file gives one.
template <class Field>
Kind optional(double low, double high, Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_optional(given, low, high, field(c)); },
          [=](const RunConfig& c) { return field(c) ? str(*field(c)) : std::string(); }, nullptr};
}

// A number from 0 to 1, or "auto". Auto begins at 1/2, and its peers fit those of a run file that says so.
template <class Field>
Kind in_flight_weight(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_in_flight_weight(given, field(c)); },
          [=](const RunConfig& c) { return field(c) ? str(*field(c)) : quoted("auto"); },
          [=](const RunConfig& c) { return print_number(field(c).value_or(0.5)); }};
}

template <class Field>
Kind resolution(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_resolution(given, field(c)); },
          [=](const RunConfig& c) { return shown_resolution(field(c)); },
          [=](const RunConfig& c) { return print_resolution(field(c)); }};
}

template <class Field>
Kind even(Field field) {
  return {[=](RunConfig& c, const RunValue& given) { return read_even(given, field(c)); },
          [=](const RunConfig& c) { return str(field(c)); }, nullptr};
}

// A budget of an update in bytes; reading one takes the other back.
template <class Field, class Other>
Kind byte_budget(double least, Field field, Other other) {
  return {[=](RunConfig& c, const RunValue& given) { return read_byte_budget(given, least, field(c), other(c)); },
          [=](const RunConfig& c) { return field(c) > 0 ? str(field(c)) : std::string(); }, nullptr};
}

}  // namespace rumor::run_key_kinds
