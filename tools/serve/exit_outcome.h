// ExitOutcome: where the samples of a test set leave a model with exits, how many answers are right, and how many bytes
// are sent (runtime/TIERS.md).
//
// Thread: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rumor::tools {

// Each tier's answer to each sample, as if it had to answer all.
struct ExitFindings {
  struct Tier {
    std::vector<double> entropy;      // normalised, of each sample
    std::vector<std::uint8_t> right;  // 1: the most probable class is the label
    std::size_t feature_bytes = 0;    // of a sample, to the next tier; 0 in the last
  };
  std::vector<Tier> tiers;
  std::size_t samples() const { return tiers.front().entropy.size(); }
};

struct ExitOutcome {
  struct Tier {
    double alone = 0;        // share of right answers, if it answered all
    double leaves = 0;       // share of the samples that it answers
    double right_of_these = 0;
  };
  std::vector<Tier> tiers;
  double right = 0;             // share of right answers of all tiers together
  double bytes_per_sample = 0;  // of features, on all links between tiers
};

// Samples leave at the first tier whose entropy is below `exit_below`, all others at the last. Requires: a sample.
ExitOutcome outcome_of(const ExitFindings& findings, double exit_below);

}  // namespace rumor::tools
