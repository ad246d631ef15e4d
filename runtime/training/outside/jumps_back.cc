#include "runtime/training/outside/jumps_back.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace rumor {

namespace {

constexpr std::size_t followed_min = 32;
constexpr double samples_kept = 0.9;    // of older samples: some ten count
constexpr double samples_wanted = 5;
constexpr double samples_jumped = 0.5;  // of all that count
constexpr double jump = 0.3;            // of what was written
constexpr double others_max = 0.5;      // of the jump: what the steps before have taken back
constexpr double next_max = 0.33;       // the same of the next step
constexpr double errors = 5;            // standard errors that a jump must be away from 0

// The first step may follow a steep loss as well as a copy, so it proves nothing.
bool has_jump(std::span<const double> shares) {
  double before = 0;  // without signs: momentum takes back, and gives again
  for (std::size_t s = 1; s + 1 < shares.size(); ++s) {
    before += std::abs(shares[s - 1]);
    if (shares[s] > jump && before < others_max * shares[s] && shares[s + 1] < next_max * shares[s]) return true;
  }
  return false;
}

}  // namespace

void JumpsBack::follow(std::span<const WeightWrite> writes) {
  if (followed_.empty() && writes.size() >= followed_min) followed_.assign(writes.begin(), writes.end());
}

void JumpsBack::leave_out(std::span<const std::uint32_t> positions) {
  rumor::leave_out(followed_, positions);
}

void JumpsBack::look(std::span<const float> change) {
  const auto moved = [&](const WeightWrite& write) {
    RUMOR_CHECK(write.position < change.size());
    return change[write.position] != 0;
  };
  if (followed_.size() < followed_min) {
    followed_.clear();
    shares_.clear();
  } else if (std::any_of(followed_.begin(), followed_.end(), moved)) {  // else it still gathers gradients
    const auto [share, variance] = taken_back(followed_, change);
    shares_.push_back(share * share < errors * errors * variance ? 0 : share);
    if (shares_.size() == steps_followed) end_sample();
  }
}

void JumpsBack::end_sample() {
  jumped_ = samples_kept * jumped_ + (has_jump(shares_) ? 1 : 0);
  samples_ = samples_kept * samples_ + 1;
  followed_.clear();
  shares_.clear();
}

bool JumpsBack::found() const { return samples_ > samples_wanted && jumped_ > samples_jumped * samples_; }

}  // namespace rumor
