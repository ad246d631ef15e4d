// Keys of a run file: how each is read from TOML, and how the shared ones are printed for the run id.
//
// Thread: plain functions; the list is made once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <toml++/toml.h>

#include "runtime/run_config.h"

namespace rumor {

// What is wrong with a value: "wants ..."; empty: nothing.
using Problem = std::string;

// Entries / parameters of one update, at most.
inline constexpr double density_max = 0.2;

// One key, "section.name".
struct RunKey {
  std::string name;
  std::function<Problem(RunConfig&, const toml::node&)> read;
  // Exactly, however it was written; null: each peer's own business, and not part of the run id.
  std::function<std::string(const RunConfig&)> shared;
};

// In the order in which the run id takes them.
const std::vector<RunKey>& run_keys();

}  // namespace rumor
