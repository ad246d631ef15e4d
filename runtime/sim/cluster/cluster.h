// Cluster: a training run in virtual time: N whole nodes (runtime/node/node.h, unchanged) on the hosts of a
// ProtocolWorld.
//
// A training step really computes, and costs a sampled virtual time. Everything else is free but for the network. A
// node that is killed comes back empty. One seed gives one trace: the hash over every event and the beginning of every
// frame is equal in all builds.
//
// Thread: one owner; no threads inside.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/node/node.h"
#include "runtime/sim/cluster/injected_faults.h"
#include "runtime/sim/cluster/training_record.h"
#include "runtime/sim/world/network.h"
#include "runtime/sim/world/protocol_world.h"
#include "runtime/sim/world/training_peer.h"

namespace rumor::sim {

struct ClusterOptions {
  std::size_t nodes = 4;
  std::uint64_t seed = 1;
  NetworkModel network;
  Duration step{20ms};              // virtual cost of a training step, +-10 %
  // Node i takes so many times as long, its number modulo theirs; empty: all are equally fast.
  std::vector<double> step_factors;
  std::uint32_t curve_points = 24;  // evaluations over the run
  bool light_faults = false;        // now and then a link resets, a node is killed and comes back empty
  std::shared_ptr<const models::StartWeights> start;  // null: from the run's seed
  // Makes the trainer of a node, each time the node starts; empty: its processor trains the run's model.
  std::function<Result<std::unique_ptr<Trainer>>(std::size_t node, const NodeOptions& options)> trainer;
  // Frames that are lost although a connection loses none (WorldOptions); null: none.
  std::function<bool(HostId from, HostId to, const gossip::OutFrame&)> loses;
  // The curve that the same run has on another network or other machines. Methods in rounds learn the same everywhere
  // (methods/lock_step.h), so they only have to find out what it costs. Null: unknown. Other methods ignore it.
  std::shared_ptr<const std::vector<CurvePoint>> learned;
  std::optional<NodeId> owner;  // of the run: may take updates back
  // Where the nodes of this run end; empty: they train run.samples, then serve on.
  std::optional<std::uint64_t> until_samples;
  // Faults from a file, besides the light ones. Requires: each names nodes of the cluster only.
  std::vector<PlannedFault> planned_faults;

  Duration step_of(std::size_t node) const {
    if (step_factors.empty()) return step;
    return from_seconds(to_seconds(step) * step_factors[node % step_factors.size()]);
  }
};

class Cluster final : private WorldObserver {
 public:
  // Errors: those of Node::create.
  static Result<std::unique_ptr<Cluster>> create(const RunConfig& config,
                                                 std::shared_ptr<const models::DataSet> data,
                                                 ClusterOptions options);

  // Runs until every node is complete (or `progress` says no), then compares the replicas.
  // Errors: Errc::diverged, Errc::not_finite (a node's training did), Errc::io (a node ended by itself for another
  // reason). The text has its status and last words.
  Result<SimResult> run(const Progress& progress);

  // ---- for scenarios in tests: drive it piece by piece ----
  void run_until(TimePoint until) { world_.run_until(until); }
  TimePoint now() const { return world_.now(); }
  // Null while killed.
  const Node* node(std::size_t i) const { return up(i) ? &peer(i).node() : nullptr; }
  bool all_complete() const;
  // No node trains on.
  void finish_all();
  // A node that ended by itself, or that broke its contract with the world.
  std::optional<Error> failure() const;
  // Compares the replicas. Errors: as run().
  Result<SimResult> conclude();
  // Ends a process at once: links break, memory is gone.
  void kill(std::size_t i);
  // Starts it again with an empty state, a new stream, the same identity.
  void restart(std::size_t i);
  // Breaks every link between nodes of different groups and keeps them apart until heal().
  void partition(const std::vector<std::uint8_t>& group_of_node) { faults_.partition(group_of_node); }
  void heal() { faults_.heal(); }
  void reset_link_of(std::size_t i) { faults_.reset_link_of(static_cast<HostId>(i)); }
  // Node i acts on this revocation and tells all others, as with network.revoke. Requires: the node is up.
  Result<void> revoke(std::size_t i, const gossip::Revocation& revocation);
  // Node i sends a frame to another one over each of their connections, beside its protocol.
  void send(std::size_t i, std::size_t to, const Bytes& frame);
  std::uint64_t trace_hash() const { return world_.trace(); }
  // Weights that the sum of everything published gives.
  const std::vector<std::int32_t>& oracle() const { return record_->oracle(); }

 private:
  Cluster(const RunConfig& config, std::shared_ptr<const models::DataSet> data, ClusterOptions options);
  WorldOptions world_options();
  InjectedFaults::Run run_under_faults();
  Result<std::unique_ptr<Node>> create_node(std::size_t i, NodeOptions options);
  StartedPeer make_peer(const PeerStart& start);
  void start_node(std::size_t i);
  bool up(std::size_t i) const { return world_.host(static_cast<HostId>(i)).up(); }
  TrainingPeer& peer(std::size_t i) const {
    return static_cast<TrainingPeer&>(*world_.host(static_cast<HostId>(i)).peer);
  }

  // WorldObserver: events that the world reports.
  void ended(HostId i) override { record_->ended(i, peer(i).node()); }
  void sealed(HostId i, const gossip::StoredUpdate& update) override { record_->published(update, i, now()); }
  void applied(HostId i, const gossip::UpdateHeader& header, HostId from) override {
    record_->applied(header.key, i, from, now());
  }
  void turned(HostId i) override { world_.host(i).refuses = peer(i).has_ended(); }

  // ---- a whole run (cluster_run.cc) ----
  TrainingRecord::Nodes living() const;
  std::uint64_t most_samples() const;

  RunConfig config_;
  std::shared_ptr<const models::DataSet> data_;
  ClusterOptions options_;
  std::optional<Error> refused_;  // why the last node could not be made
  ProtocolWorld world_;
  InjectedFaults faults_;
  Prng chance_;
  std::optional<TrainingRecord> record_;  // from the end of create() on
  bool stop_early_ = false, finishing_ = false;
};

}  // namespace rumor::sim
