// The cost of the updates in a file: `rumor stats FILE` says how well a model would compress.
//
// Dense updates go through the same Compressor as in training, the residual carrying over from step to step;
// sparse ones are encoded as they are.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "tools/stats/stats_report.h"

namespace rumor::tools {

// density: of dense updates; 0.001 unless given. budget_bytes: instead of a density, the largest payload of an update;
// the number of entries follows from it as in training (compress/select/budget.h).
// Errors: Errc::usage for both at once, for either with a sparse file, for a density outside (0, 1] and for a
// budget no entry fits into; Errc::limit for changes that are not finite; else those of UpdateFile.
Result<StatsReport> stats_of_update_file(const std::string& path, std::optional<double> density,
                                         std::optional<std::uint64_t> budget_bytes);

}  // namespace rumor::tools
