// StagedRun: a model that is cut into stages, trained in virtual time (gossip/PIPELINE.md). Each stage is a
// Cluster of whole nodes, as any run; a Pipeline on each node moves micro-batches to and from the
// neighbouring stages over a fabric of its own, with the same network model.
//
// Node i serves stage i modulo the stages. A step of a node lasts from the node's leave to begin until its
// pipeline has the gradients. The virtual cost of a step is that of the whole model; a stage has the share of
// its multiply-adds, a forward pass is a third of it. Clusters go on together, a millisecond at a time, so
// the beginning of a step may be late by that.
//
// One seed gives one trace. Thread: one owner; no threads inside.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "compress/border/border_codec.h"
#include "gossip/pipeline/pipeline.h"
#include "runtime/sim/cluster/cluster.h"
#include "runtime/sim/world/event_queue.h"
#include "runtime/stages/stage_trainer.h"

namespace rumor::sim {

struct StageResult {
  models::UnitRange units;
  SimResult run;
  double utilisation = 0;  // of the time until the last step: share in which its nodes compute, their mean
};

struct StagedResult {
  std::vector<StageResult> stages;
  models::Evaluation evaluation;  // of the whole model, with the tensors of all stages
  double virtual_seconds = 0;     // until the last step
  double wall_seconds = 0;        // filled in by whoever has a clock
  std::uint64_t trace_hash = 0;
  // Bytes between stages, by kind of frame.
  std::uint64_t activation_bytes = 0, gradient_bytes = 0, control_bytes = 0;
  gossip::PipelineFigures figures;  // of all nodes together
};

// The object that `rumor sim --json` writes for a run in stages.
std::string to_json(const StagedResult& result);

class StagedRun {
 public:
  // Errors: those of models::cut_model() and Cluster::create(); Errc::usage for too few nodes, or a batch
  // that the micro-batches do not divide.
  static Result<std::unique_ptr<StagedRun>> create(const RunConfig& config,
                                                   std::shared_ptr<const models::DataSet> data,
                                                   ClusterOptions options);

  // Until the first stage has seen the run's samples, and every replica has converged. Errors: as
  // Cluster::run().
  // `progress` says no: an error, since the stages are not equally far then.
  Result<StagedResult> run(const Progress& progress);

 private:
  struct Peer {
    std::size_t stage = 0, node = 0;  // node: in its cluster
    StageTrainer trainer;             // its `trainer` has gone to the node
    Trainer* trainer_of_node = nullptr;
    std::unique_ptr<gossip::Pipeline> pipeline;
    Duration forward{0}, backward{0};  // cost of a micro-batch
    bool in_step = false;
    gossip::Made made;  // of the work under way
    Duration computed{0};
  };
  struct Event {
    FabricEvent fabric;
    std::optional<std::size_t> worked;  // peer whose work is done
  };

  StagedRun(const RunConfig& config, std::shared_ptr<const models::DataSet> data, ClusterOptions options);
  Result<void> make_stages();
  Result<void> make_stage(std::size_t stage);
  Result<std::unique_ptr<Trainer>> make_trainer(std::size_t peer, const RunConfig& config,
                                                const NodeOptions& options);
  void share_costs();
  void link_stages();
  std::size_t stages() const { return config_.pipeline.stages; }
  std::size_t peer_of(std::size_t stage, std::size_t node) const { return node * stages() + stage; }
  std::size_t replicas(std::size_t stage) const { return (options_.nodes - stage + stages() - 1) / stages(); }

  void advance();
  void begin_steps();
  void handle(const Event& event);
  using Input = std::function<void(gossip::Pipeline&, gossip::PipelineOutbox&)>;
  void call(std::size_t peer, const Input& input);
  void carry_out(std::size_t peer, gossip::Send& send);
  void carry_out(std::size_t peer, gossip::Close& close);
  void carry_out(std::size_t peer, gossip::Note& note);
  void carry_out(std::size_t peer, gossip::Work& work);
  void carry_out(std::size_t peer, gossip::MakeStep& step);
  CurvePoint point() const;  // of the first stage; the loss is that of the last one's training
  double share_done() const;
  void finish();
  bool all_complete() const;
  std::optional<Error> failure() const;
  Result<StagedResult> conclude();
  models::Evaluation evaluate() const;

  RunConfig config_;
  std::shared_ptr<const models::DataSet> data_;
  ClusterOptions options_;
  compress::BorderNumbers border_;
  std::vector<models::UnitRange> units_;
  std::vector<RunConfig> configs_;  // of the stages; clusters refer to them
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  EventQueue<Event> queue_;
  Fabric fabric_;
  TimePoint now_{}, last_step_{};
  std::vector<std::size_t> beginning_;  // peers whose node wants to begin a step
  std::optional<Error> refused_;
  bool finished_ = false;
  std::uint64_t trace_ = 0;
  StagedResult result_;
};

}  // namespace rumor::sim
