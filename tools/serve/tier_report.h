// The report of `rumor serve --report`: all tiers of a model in one process, over the test set (runtime/TIERS.md).
//
// Thread: blocks the caller; `progress` is called on it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compress/border/border_codec.h"
#include "models/data/dataset.h"
#include "tools/serve/exit_outcome.h"
#include "tools/serve/tier.h"

namespace rumor::tools {

// Called now and then; returns false to stop.
using ReportProgress = std::function<bool(std::uint32_t samples, std::uint32_t of)>;

// The answers of all tiers to the test set. Features go from tier to tier as over a network, coded and decoded.
// Requires: tiers 1 to the last, in order. Errors: Errc::io when it was stopped; Errc::usage without test rows;
// Errc::corrupt where a feature is not finite.
Result<ExitFindings> find_exits(std::vector<Tier>& tiers, const models::DataSet& data,
                                compress::BorderNumbers numbers, const ReportProgress& progress);

// For people, and as JSON. `exit_below` has a table of its own; other thresholds have a line each.
std::string report_text(const ExitFindings& findings, const models::DataSet& data, double exit_below);
std::string report_json(const ExitFindings& findings, const models::DataSet& data, double exit_below);

}  // namespace rumor::tools
