// What the updates of a file cost: the answer of `rumor stats FILE` to "how well would my model compress?".
//
// Dense updates go through the same Compressor as in training, the residual carrying over from step to step;
// sparse ones are encoded as they are.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/statistics.h"
#include "runtime/base/result.h"

namespace rumor::tools {

struct TensorReport {
  std::string name;
  std::uint32_t params = 0;
  std::uint64_t entries = 0;  // in all updates
  double threshold = 0;       // mean over the updates, in weight units; 0 where the source does not say
  double density = 0;         // entries / (updates * params)
  double bits_per_entry = 0;  // of its share of the payload; 0 without entries
  double residual_rms = 0;    // after the last update; 0 where the source does not say
};

struct StatsReport {
  std::string source;
  std::uint64_t updates = 0;
  std::uint64_t params = 0;
  std::uint64_t entries = 0;
  double density = 0;
  double bits_per_entry = 0;
  double bound_bits_per_entry = 0;
  double ratio = 0;              // dense fp32 bytes / payload bytes
  double update_bytes_mean = 0;  // payload bytes of an update
  bool round_trip_exact = false;
  // Absent when the source's updates are not at hand to be encoded otherwise.
  std::optional<compress::LayoutBytes> layouts;
  std::vector<TensorReport> tensors;

  // The object of `rumor stats --json`, indented, ending in a newline: the members above under their names,
  // except that round_trip is "exact" or "broken".
  std::string to_json() const;
  // For people: a summary, the other layouts with their size against this one, the tensors.
  std::string to_table() const;
};

// The figures gathered in `statistics`, with names and sizes from `layout`.
StatsReport report_of(const std::string& source, const ParamLayout& layout,
                      const compress::Statistics& statistics, bool with_layouts);

// density: of dense updates; 0.001 unless given. budget_bytes: instead of a density, the largest number of
// entries whose mean payload does not exceed it; found by running the file several times, each time with what
// the bits per entry of the last run suggest.
// Errors: Errc::usage for both at once, for either with a sparse file, for a density outside (0, 1] and for a
// budget no entry fits into; Errc::limit for changes that are not finite; else those of UpdateFile.
Result<StatsReport> stats_of_update_file(const std::string& path, std::optional<double> density,
                                         std::optional<std::uint64_t> budget_bytes);

}  // namespace rumor::tools
