#include "runtime/sim/methods/gossip_rules.h"

#include <algorithm>
#include <cmath>

namespace rumor::sim {

double metropolis_weight(std::size_t neighbours, std::size_t neighbours_of_other) {
  return 1.0 / static_cast<double>(1 + std::max(neighbours, neighbours_of_other));
}

double consensus_rate(double density) { return std::sqrt(density) / 2; }

void draw_together(std::span<float> x, std::span<const float> own, std::span<const float> theirs, double share) {
  const float s = static_cast<float>(share);
  for (std::size_t at = 0; at < x.size(); ++at) x[at] += s * (theirs[at] - own[at]);
}

bool has_drifted(std::span<const float> x, std::span<const float> copy, double bound) {
  if (bound == 0) return true;
  double squares = 0;
  for (std::size_t at = 0; at < x.size(); ++at) {
    const double apart = static_cast<double>(x[at]) - static_cast<double>(copy[at]);
    squares += apart * apart;
  }
  return squares > bound;
}

}  // namespace rumor::sim
