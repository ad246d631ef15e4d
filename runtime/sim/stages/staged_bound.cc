#include "runtime/sim/stages/staged_bound.h"

#include <algorithm>

namespace rumor::sim {

namespace {

// Seconds of a micro-batch on the links of a replica of stage `stage`, from 0.
double link_seconds(const std::vector<StageCosts>& costs, std::size_t stage, const NetworkModel& network) {
  const double up = static_cast<double>(costs[stage].up_bytes + costs[stage].down_bytes);
  const double from_below = stage > 0 ? static_cast<double>(costs[stage - 1].up_bytes) : 0;
  const double from_above = stage + 1 < costs.size() ? static_cast<double>(costs[stage + 1].down_bytes) : 0;
  return std::max(up / static_cast<double>(network.up_bytes_per_second),
                  (from_below + from_above) / static_cast<double>(network.down_bytes_per_second));
}

StagedBound::Stage bound_of(const RunConfig& config, const std::vector<StageCosts>& costs,
                            const ClusterOptions& options, std::size_t stage) {
  StagedBound::Stage bound{.costs = costs[stage]};
  const NetworkModel& network = options.network;
  bound.link_seconds = link_seconds(costs, stage, network);
  bound.round_trip_seconds = to_seconds(network.latency_min + network.latency_max + network.jitter);
  double replicas = 0;
  for (std::size_t host = stage; host < options.nodes; host += costs.size(), ++replicas) {
    const double seconds = compute_seconds(config, costs, options, host);
    bound.compute_seconds += seconds;
    bound.rows_per_second += micro_batch_rows(config) / std::max(seconds, bound.link_seconds);
  }
  bound.compute_seconds /= std::max(replicas, 1.0);
  return bound;
}

}  // namespace

double StagedBound::Stage::in_flight() const {
  return 1 + (round_trip_seconds + link_seconds) / std::max(compute_seconds, 1e-9);
}

double compute_seconds(const RunConfig& config, const std::vector<StageCosts>& costs, const ClusterOptions& options,
                       std::size_t host) {
  double all = 0;
  for (const StageCosts& one : costs) all += static_cast<double>(one.multiply_adds);
  const double share = static_cast<double>(costs[host % costs.size()].multiply_adds) / all;
  return to_seconds(options.step_of(host)) * share / config.pipeline.micro_batches;
}

Result<StagedBound> staged_bound(const RunConfig& config, const models::DataSet& data, const ClusterOptions& options) {
  const auto costs = stage_costs(config, data);
  if (!costs) return costs.error();
  StagedBound bound;
  for (std::size_t stage = 0; stage < costs->size(); ++stage)
    bound.stages.push_back(bound_of(config, *costs, options, stage));
  const auto slowest = std::min_element(bound.stages.begin(), bound.stages.end(), [](const auto& a, const auto& b) {
    return a.rows_per_second < b.rows_per_second;
  });
  bound.slowest = static_cast<std::size_t>(slowest - bound.stages.begin());
  bound.rows_per_second = slowest->rows_per_second;
  return bound;
}

}  // namespace rumor::sim
