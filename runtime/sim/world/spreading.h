// Spreading: how fast and at what price updates of a given size reach everybody: the protocol alone, at
// scale.
//
// Every node makes an update of `payload_bytes` each T = nodes * payload_bytes / (load * bandwidth), so that
// each downlink is busy for `load` of the time. Trees grow in the first rounds; then everything is measured
// for a while. Payloads are opaque and kept once for all nodes, so that a thousand nodes fit into memory;
// they are copied at each hop as in reality.
//
// Thread: one owner. Costs: two copies of the payload a delivery.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/time.h"
#include "runtime/sim/world/network.h"

namespace rumor::sim {

struct SpreadingOptions {
  std::size_t nodes = 200;
  std::size_t payload_bytes = 240'000;
  double load = 0.75;
  std::uint64_t seed = 1;
  NetworkModel network;
  double rounds = 2;   // of every node, measured; as many before
  Duration outage{0};  // a third of all connections stand still for so long when measuring begins
  double undiallable = 0;    // share of the nodes that others cannot dial, as at home; they dial all others
};

struct SpreadingResult {
  SpreadingOptions options;
  double interval_seconds = 0, virtual_seconds = 0;
  std::uint64_t updates = 0, deliveries = 0,
                missing = 0;  // missing: made in time and not everywhere at the end
  double copies = 0, p50 = 0, p99 = 0, last_p99 = 0;
  double worst_node_median = 0;  // the slowest node's median delay
  double hops_mean = 0, hops_max = 0;
  double busiest_uplink = 0;     // over the mean
  double control_share = 0;      // of bytes sent
  double outage_goodput = 0;     // of what was made during the outage, how much arrived meanwhile
  double recovered_seconds = 0;  // after the outage until 95 % of what is made arrives again
  double links_mean = 0, links_least = 0;  // of a node, at the end
  std::uint64_t connections = 0;           // made while measuring
  std::uint64_t trace = 0, events = 0;
};

// `tick` is told the fraction done; false ends the run.
SpreadingResult run_spreading(const SpreadingOptions& options,
                              const std::function<bool(double)>& tick = nullptr);

std::string to_json(const SpreadingResult& result, double wall_seconds);

}  // namespace rumor::sim
