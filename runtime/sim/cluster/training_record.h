// TrainingRecord: the figures of a simulated training run, gathered while it goes on: the curve, traffic, deliveries,
// and the sum of everything published, to which the replicas are compared at the end. Where peers have models of their
// own it compares the models instead, and evaluates all together: the mean of their weights where they average, the
// mean of their predictions where they codistil.
//
// Thread: one owner. Memory: the weights once, and O(updates * nodes) bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/node/node.h"
#include "runtime/sim/cluster/curve.h"
#include "runtime/sim/record/sim_result.h"
#include "runtime/sim/world/delivery.h"

namespace rumor::sim {

class TrainingRecord {
 public:
  // The nodes of a cluster, in order; null while one is down.
  using Nodes = std::vector<Node*>;

  // The run starts from the weights `start`. Refers to `config`. `nodes` counts all that may publish or apply.
  TrainingRecord(const RunConfig& config, std::shared_ptr<const models::DataSet> data, const ParamLayout& layout,
                 std::span<const std::int32_t> start, std::size_t nodes, std::uint32_t curve_points);

  void published(const gossip::StoredUpdate& update, std::size_t by, TimePoint now);
  void applied(const UpdateKey& key, std::size_t node, std::size_t from, TimePoint now) {
    delivery_.applied(key, node, from, now);
  }
  // A process has ended, and with it its counters; a new one has begun.
  void ended(std::size_t i, const Node& node);
  void restarted(std::size_t i) { delivery_.restarted(i); }

  // On the test set, at most `rows_max` of its rows. Replicas with equal digests are evaluated once.
  models::Evaluation evaluate(Node& node, std::uint32_t rows_max = UINT32_MAX);
  // Adds a point to the curve when one is due, and tells how far the run is. False: `progress` says stop.
  bool watch(const Nodes& nodes, TimePoint now, const Progress& progress);
  // Samples of all nodes together, those of earlier lives too. Requires: they have models of their own.
  std::uint64_t samples(const Nodes& nodes) const;
  // All figures but names, seeds and what was injected. Requires: one node is up.
  SimResult conclude(const Nodes& nodes, TimePoint now);

  // Weights that the sum of everything published gives.
  const std::vector<std::int32_t>& oracle() const { return oracle_; }

 private:
  struct Totals {
    std::uint64_t sent = 0, received = 0, samples = 0, steps = 0, steps_held = 0, said_lost = 0;
  };
  // Behind the run, as `node` has it or, with models of their own, all together.
  std::uint64_t seen(const Nodes& nodes, const Node& node) const;
  // The result that the run gives its users: one peer's, or where each has learned something else the mean over peers.
  models::Evaluation result_of(const Nodes& nodes, Node& first);
  models::Evaluation evaluate_together(std::span<const std::span<const float>> models) const;
  void compare_replicas(const Nodes& nodes, SimResult& result) const;
  void compare_models(const Nodes& nodes, SimResult& result) const;
  // A point of the curve: what the run gives, what all have sent, and how node `i` compresses.
  CurvePoint measure(const Nodes& nodes, std::size_t i, TimePoint now, const models::Evaluation& result);
  void count_traffic(const Nodes& nodes, SimResult& result) const;

  const RunConfig& config_;
  std::shared_ptr<const models::DataSet> data_;
  ParamLayout layout_;
  Delivery delivery_;
  std::vector<std::int32_t> oracle_;
  std::vector<float> start_;  // with models of their own: what the run starts from
  std::vector<Totals> before_;  // by node: of its earlier lives
  Curve curve_;
  std::vector<TensorResult> tensors_;
  std::optional<std::pair<std::string, models::Evaluation>> last_evaluation_;  // by digest
  std::uint64_t own_payload_bytes_ = 0, own_entries_ = 0, own_updates_ = 0;
  double own_bound_bits_ = 0;
};

}  // namespace rumor::sim
