// The keys of a run file: how each is read and shown. For runtime/run/run_config_keys.cc, which knows TOML; nothing
// here does.
//
// Thread: the table is made once, at its first use, and never changes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/run/run_config.h"

namespace rumor {

// The value of a key in a file. std::monostate is a value of a type that no key accepts.
struct RunValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<RunValue>> is;

  template <class T>
  std::optional<T> exact() const {
    const T* value = std::get_if<T>(&is);
    return value == nullptr ? std::nullopt : std::optional<T>(*value);
  }
  // A whole number is one too.
  std::optional<double> number() const {
    if (const auto whole = exact<std::int64_t>()) return static_cast<double>(*whole);
    return exact<double>();
  }
  const std::vector<RunValue>* list() const { return std::get_if<std::vector<RunValue>>(&is); }
};

using RunKeyProblem = std::string;  // "wants a number from 0 to 1"; empty: fine

struct RunKeyRow {
  std::string name;       // "section.key"
  std::string_view help;  // one line, for the reference
  std::function<RunKeyProblem(RunConfig&, const RunValue&)> read;
  std::function<std::string(const RunConfig&)> shown;   // as one would write it; empty: not set
  std::function<std::string(const RunConfig&)> shared;  // exact text for the run id; null: not part of it
};

// In the order in which the run id has them.
const std::vector<RunKeyRow>& run_key_table();

// True for the keys that only models of family "llama" have.
bool is_llama_key(std::string_view name);

}  // namespace rumor
