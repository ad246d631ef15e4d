#include "tools/serve/exit_outcome.h"

#include "runtime/base/check.h"

namespace rumor::tools {

ExitOutcome outcome_of(const ExitFindings& findings, double exit_below) {
  RUMOR_CHECK(!findings.tiers.empty() && findings.samples() > 0);
  const std::size_t tiers = findings.tiers.size();
  const auto samples = static_cast<double>(findings.samples());
  ExitOutcome outcome;
  outcome.tiers.resize(tiers);
  std::vector<std::size_t> left(tiers), right_left(tiers);
  std::size_t bytes = 0;
  for (std::size_t sample = 0; sample < findings.samples(); ++sample) {
    std::size_t tier = 0;
    for (; tier + 1 < tiers && !(findings.tiers[tier].entropy[sample] < exit_below); ++tier)
      bytes += findings.tiers[tier].feature_bytes;
    ++left[tier];
    right_left[tier] += findings.tiers[tier].right[sample];
  }
  std::size_t right_of_all = 0;
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    std::size_t alone = 0;
    for (const std::uint8_t right : findings.tiers[tier].right) alone += right;
    ExitOutcome::Tier& one = outcome.tiers[tier];
    one.alone = static_cast<double>(alone) / samples;
    one.leaves = static_cast<double>(left[tier]) / samples;
    if (left[tier] > 0) one.right_of_these = static_cast<double>(right_left[tier]) / static_cast<double>(left[tier]);
    right_of_all += right_left[tier];
  }
  outcome.right = static_cast<double>(right_of_all) / samples;
  outcome.bytes_per_sample = static_cast<double>(bytes) / samples;
  return outcome;
}

}  // namespace rumor::tools
