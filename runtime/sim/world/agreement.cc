#include "runtime/sim/world/agreement.h"

#include <cmath>

namespace rumor::sim {

namespace {

double square(double x) {
  return x * x;
}

double mean_at(Models models, std::size_t at) {
  double sum = 0;
  for (const auto& model : models) sum += static_cast<double>(model[at]);
  return sum / static_cast<double>(models.size());
}

}  // namespace

double disagreement(Models models, std::span<const float> start) {
  double apart = 0, moved = 0;
  for (std::size_t at = 0; at < start.size(); ++at) {
    const double mean = mean_at(models, at);
    for (const auto& model : models) apart += square(static_cast<double>(model[at]) - mean);
    moved += square(mean - static_cast<double>(start[at]));
  }
  return moved > 0 ? std::sqrt(apart / static_cast<double>(models.size()) / moved) : 0;
}

std::vector<float> mean_of(Models models) {
  std::vector<float> mean(models.front().size());
  for (std::size_t at = 0; at < mean.size(); ++at) mean[at] = static_cast<float>(mean_at(models, at));
  return mean;
}

}  // namespace rumor::sim
