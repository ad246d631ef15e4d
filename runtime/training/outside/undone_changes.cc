#include "runtime/training/outside/undone_changes.h"

#include <algorithm>
#include <cmath>


namespace rumor {

namespace {
constexpr std::size_t sample_max = 512;     // writes of one step
constexpr std::size_t writes_counted = 64;  // a step with more counts as one with so many
constexpr double share_kept = 0.97;         // of older steps: some thirty count
constexpr double weight_wanted = 16;        // of all steps, each 1 at most
constexpr double share_undone = 0.7;        // of what was written
constexpr double error_max = 0.25;          // of a regression that counts half
}  // namespace

void UndoneChanges::wrote(std::uint32_t position, float before, float after) {
  if (sample_.size() < sample_max && before != after) sample_.push_back({position, after - before});
}

void UndoneChanges::leave_out(std::span<const std::uint32_t> positions) {
  rumor::leave_out(sample_, positions);
  jumps_.leave_out(positions);
}

void UndoneChanges::look(std::span<const float> change) {
  jumps_.follow(sample_);
  jumps_.look(change);
  if (sample_.empty()) return;
  const auto [share, variance] = taken_back(sample_, change);
  const double count = static_cast<double>(sample_.size());
  const double weight =
      std::min(count / static_cast<double>(writes_counted), 1.0) / (1 + variance / (error_max * error_max));
  const double kept = std::pow(share_kept, weight);
  share_ = kept * share_ + weight * std::clamp(share, -1.0, 2.0);
  weight_ = kept * weight_ + weight;
  sample_.clear();
}

bool UndoneChanges::found() {
  if (told_ || weight_ < weight_wanted || !(share_ > share_undone * weight_)) return false;
  return told_ = true;
}

bool UndoneChanges::found_jumps() {
  if (told_ || told_jumps_ || !jumps_.found()) return false;
  return told_jumps_ = true;
}

}  // namespace rumor
