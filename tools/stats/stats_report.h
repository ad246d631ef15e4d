// StatsReport: the figures of `rumor stats` for updates of any source; as JSON, table and page.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/statistics.h"

namespace rumor::tools {

struct TensorReport {
  std::string name;
  std::uint32_t params = 0;
  std::uint64_t entries = 0;  // in all updates
  double threshold = 0;       // mean over the updates, in weight units; 0 where the source does not say
  double density = 0;         // entries / (updates * params)
  double bits_per_entry = 0;  // of its share of the canonical payload; 0 without entries
  double bound_bits_per_entry = 0;     // as below, within this tensor
  compress::ModeCounts modes;          // of the segments with entries here, as a slow link carries them
  double residual_rms = 0;             // after the last update; 0 where the source does not say
  std::optional<double> residual_age;  // as below, within this tensor
};

// How long updates took from where they were made to where they were applied, in updates that the receiver
// made itself in between.
struct PeerLag {
  std::string node;  // hex
  double mean = 0;   // of the last sixteen or so
  std::uint64_t updates = 0, max = 0;
};
struct Staleness {
  double mean = 0;
  std::uint64_t max = 0;
  double rate_factor = 1;      // factor that the staleness rules apply to the learning rate
  std::vector<PeerLag> peers;  // those that train now
};

// Share of all parameters (or of all waiting change) that falls below `limit` and not below the one before.
struct Bin {
  double limit = 0;  // infinite in the last
  double share = 0;
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
  compress::ModeCounts modes;  // segments by the mode a slow link would carry them in
  std::vector<TensorReport> tensors;
  std::vector<compress::UpdateFigures> history;  // one for each update, oldest first

  // The size of the residual divided by the amount that one update removes: the mean number of updates for which a
  // change waits before it is sent, in the steady state (Little's law). Absent if the residual is not known.
  std::optional<double> residual_age;
  std::vector<Bin> residual_sizes;  // parameters by |residual| / threshold; empty where not known
  std::vector<Bin> residual_ages;   // waiting change by updates since its parameter was last sent; empty likewise
  std::optional<Staleness> staleness;
  std::string guarantee;  // guarantee of the run's exchange for replicas; empty if the source does not say

  // The object of `rumor stats --json`, indented, ending in a newline: the members above under their names,
  // except that round_trip is "exact" or "broken".
  std::string to_json() const;
  // For people: a summary, the other layouts with their size against this one, the tensors.
  std::string to_table() const;
  // A self-contained HTML page: the table, history and histograms as charts (stats_page.cc).
  std::string to_page() const;
};

// The figures gathered in `statistics`, with names and sizes from `layout`.
StatsReport report_of(const std::string& source, const ParamLayout& layout,
                      const compress::Statistics& statistics, bool with_layouts);

// Puts residual_rms, residual_age and residual_sizes into `report`.
// residual: one for each parameter. Requires: `report` made by report_of() from the same layout and statistics.
void add_residual(StatsReport& report, const ParamLayout& layout, const compress::Statistics& statistics,
                  std::span<const float> residual);

}  // namespace rumor::tools
