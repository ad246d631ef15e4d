// How the experiments write their figures, in tables, in sentences and on pages.
//
// Thread: plain functions.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/text.h"
#include "runtime/sim/experiments/compare.h"

namespace rumor::sim {

// 0.8863 -> "88.63 %"; "-" for nothing.
inline std::string percent(const std::optional<double>& share, int digits = 2) {
  return share ? fixed(*share * 100, digits) + " %" : "-";
}

inline std::string seconds(double s) { return fixed(s, s < 100 ? 1 : 0) + " s"; }

// Run, peers, network, samples, seeds and learning rates of a comparison, in one line.
std::string conditions_of(const Comparison& comparison);

}  // namespace rumor::sim
