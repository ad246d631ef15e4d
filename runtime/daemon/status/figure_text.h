// Figures as text for programs: the JSON of /status, the samples of /metrics (Prometheus: base units, _total for
// counters), and the description of all figures at /figures, from which the page makes its tables.
//
// Thread: plain functions.
#pragma once

#include <string>

#include "runtime/base/figures.h"
#include "runtime/node/node_status.h"

namespace rumor::daemon {

// One object. A group becomes an object at its path, a list an array of objects. Text that is not UTF-8, as reasons of
// other peers may be, is replaced.
std::string figures_json(const FigureSheet& sheet);

std::string figures_metrics(const FigureSheet& sheet);
inline constexpr const char* info_help = "Always 1; its labels name the program, the run and the peer.";

// The figures that people see, in their order: [{object title list note figures [{member label form help}]}].
std::string figures_description(const FigureSheet& sheet);

// The /status object (runtime/CONTRACTS.md).
inline std::string status_json(const NodeStatus& status) { return figures_json(status_figures(status)); }

// Without values: the figures that any peer has.
inline FigureSheet described_figures() { return status_figures({}); }

}  // namespace rumor::daemon
