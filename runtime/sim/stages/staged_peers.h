// StagedPeers: the peers of a model that is cut into stages (gossip/PIPELINE.md), on the hosts of a ProtocolWorld.
// Each is a whole node with the pipeline of a real peer; links to neighbouring stages, the membership of all stages
// and the end of the run are production code. Who drives the world decides what happens to the hosts: a training run
// (staged_run.h) or a storm (staged_storm.h).
//
// Host i serves stage i modulo the stages. The virtual cost of a step is that of the whole model: a stage has the
// share of its multiply-adds, and a forward pass is a third of it.
//
// Thread: one owner. Memory: the nodes' besides a record for each stage.
#pragma once

#include <memory>
#include <vector>

#include "runtime/sim/cluster/cluster.h"
#include "runtime/sim/stages/counted_books.h"
#include "runtime/sim/stages/staged_bound.h"
#include "runtime/sim/stages/staged_result.h"
#include "runtime/sim/world/protocol_world.h"
#include "runtime/sim/world/training_peer.h"
#include "runtime/stages/stage_place.h"
#include "runtime/stages/stage_trainer.h"

namespace rumor::sim {

class StagedPeers final : public WorldObserver {
 public:
  // Errors: those of StagePlace::create(), StageTrainer::create() and Node::create(); Errc::usage for too few nodes.
  static Result<std::unique_ptr<StagedPeers>> create(const RunConfig& config,
                                                     std::shared_ptr<const models::DataSet> data,
                                                     const ClusterOptions& options);

  // Before the world's first event. Checkpoints and logs are kept on the disks of hosts if `checkpoint_every` is not 0.
  void watch(ProtocolWorld& world, Duration checkpoint_every);
  StartedPeer make_peer(const PeerStart& start);

  std::size_t stages() const { return places_.size(); }
  std::size_t hosts() const { return options_.nodes; }
  std::size_t stage_of(HostId i) const { return i % stages(); }
  std::size_t replicas(std::size_t stage) const { return (hosts() - stage + stages() - 1) / stages(); }
  // Replicas of the stage that have caught up, and so can give its weights to others.
  std::size_t trained_replicas(std::size_t stage) const;
  // The initial weights of each stage, and their form.
  const std::vector<SimModel>& models() const { return models_; }

  // From now on host i takes so many times as long (ClusterOptions::step_factors).
  void set_step_factor(HostId i, double factor);

  // Null while down.
  Node* node(HostId i) const;
  bool complete() const;
  // The most that a replica of the first stage has seen: that stage decides how long the run is.
  std::uint64_t samples() const;
  // Micro-batches that a stage has counted, and those of the first stage that it has not.
  const CountedBooks& counted() const { return books_; }
  // Numbers that are not finite, or a node that ended by itself.
  std::optional<Error> failure() const;
  // Adds a point to the curve when one is due. False: `progress` says stop.
  bool show(const Progress& progress);
  // Requires: a peer of each stage is up.
  StagedResult conclude();

  // WorldObserver
  void started(HostId i) override;
  void ended(HostId i) override;
  void sealed(HostId i, const gossip::StoredUpdate& update) override;
  void applied(HostId i, const gossip::UpdateHeader& header, HostId from) override;
  void asked(HostId, const gossip::Effect& effect) override;
  void turned(HostId i) override;

 private:
  struct Cost {
    Duration forward{0}, backward{0};  // of a micro-batch
  };

  StagedPeers(const RunConfig& config, std::shared_ptr<const models::DataSet> data, const ClusterOptions& options);
  Result<void> place_stages();
  Result<void> try_peers();
  Result<StageTrainer> make_trainer(HostId i, const NodeOptions& options) const;
  NodeOptions options_of(const PeerStart& start) const;
  TrainingPeer::Stage duty(HostId i, const StageTrainer& made, Node& node);
  Cost cost_of(HostId i) const;
  std::size_t number_of(HostId i) const { return i / stages(); }  // among the replicas of its stage
  TrainingRecord& record_of(HostId i) { return *records_[stage_of(i)]; }
  TrainingRecord::Nodes nodes_of(std::size_t stage) const;
  bool each_stage_is_up() const;
  models::Evaluation evaluate() const;
  CurvePoint point() const;
  StageResult conclude(std::size_t stage, double seconds);

  RunConfig config_;
  std::shared_ptr<const models::DataSet> data_;
  ClusterOptions options_;
  std::vector<StagePlace> places_;  // of the stages; records refer to them
  StagedBound bound_;
  std::vector<StageCosts> costs_;
  std::vector<SimModel> models_;
  std::vector<std::unique_ptr<TrainingRecord>> records_;
  CountedBooks books_;
  Curve curve_;
  ProtocolWorld* world_ = nullptr;
  Duration checkpoint_every_{0};
  gossip::PipelineFigures figures_;  // of earlier lives
  std::uint64_t activation_bytes_ = 0, gradient_bytes_ = 0, control_bytes_ = 0, all_bytes_ = 0;
  std::optional<TimePoint> first_work_;
  TimePoint last_step_{};
  std::optional<Error> failed_;
};

}  // namespace rumor::sim
