// SimResult: what a simulated (or real, loopback) cluster run has shown. `rumor sim --json` and --report
// print it.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rumor::sim {

struct CurvePoint {
  std::uint64_t samples = 0;
  double virtual_seconds = 0;
  double loss = 0;
  std::optional<double> accuracy;
  double sent_bytes_per_node = 0;
  double threshold = 0;  // of one node's last update, in weight units
  double density = 0;    // of the same
};

struct TensorResult {
  std::string name;
  std::uint64_t params = 0;
  std::vector<double> density;       // at each curve point, of one node's last update
  std::vector<double> residual_rms;  // likewise
};

struct NodeTraffic {
  std::string name;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
};

struct SimResult {
  std::string run_name, run_id, mode;
  std::size_t nodes = 0;
  std::uint64_t sim_seed = 0;
  std::uint64_t params = 0;
  std::uint64_t samples = 0;
  double virtual_seconds = 0;
  double wall_seconds = 0;  // filled in by whoever has a clock
  std::uint64_t trace_hash = 0;
  bool stopped_early = false;
  double idle_fraction = 0;  // of the virtual time, in which a node does not compute; mean over nodes

  double loss = 0;
  std::optional<double> accuracy;
  std::vector<CurvePoint> curve;  // its last point is the end of the run
  std::vector<TensorResult> tensors;

  // Traffic, means over nodes; frame bytes as handed to links.
  double sent_bytes_per_node = 0, received_bytes_per_node = 0;
  double update_bytes_mean = 0, dense_update_bytes = 0, ratio = 0;
  double copies_per_delivery = 0, control_fraction = 0;
  double link_coding_ratio = 1;  // payload bytes on links / canonical bytes of the same payloads
  std::vector<NodeTraffic> traffic;

  double density = 0, bits_per_entry = 0, bound_bits_per_entry = 0;

  // Replicas at the end, compared bit by bit and with the sum of all published updates.
  bool identical = false;
  // Where a mode does not promise equal bits: how far peers are from their mean (root mean square), over how far that
  // has come from the start.
  double disagreement = 0;
  std::string guarantee;  // what the mode promises of them, a sentence for people
  // Where peers have models of their own: what all of them reach together (runtime/METHODS.md says how).
  std::optional<double> together_loss, together_accuracy;
  double silent_fraction = 0;  // steps after which a peer told the others nothing / all steps
  std::string digest;
  // Updates that no replica holds at the end: lost, after another peer than their maker had them or as their maker has
  // said; undelivered, since their maker was killed for good before anybody had them.
  std::uint64_t updates = 0, lost = 0, undelivered = 0, doubled = 0;

  double delivery_p50 = 0, delivery_p99 = 0, delivery_last_p99 = 0;  // seconds
  double hops_mean = 0, hops_max = 0;
  std::uint64_t link_resets = 0, restarts = 0, partitions = 0;  // faults injected
  std::uint64_t strikes = 0;  // of a storm: all kinds together
};

// Empty, or ", 3 that only a killed peer had".
std::string undelivered_text(const SimResult& result);

// The object that `rumor sim --json` writes.
std::string to_json(const SimResult& result);

// Charts of loss and accuracy against samples and bytes, as HTML.
std::string learning_charts(const std::vector<CurvePoint>& curve);

// One self-contained HTML page: curves against samples and bytes, threshold and density per tensor, traffic
// per node.
std::string to_html(const SimResult& result);

}  // namespace rumor::sim
