// Cluster: N nodes in virtual time, over a modelled network. The nodes are runtime/node/node.h, unchanged.
//
// A training step really computes, and costs a drawn virtual time. Everything else is free but for the
// network. One seed gives one trace: the hash over every event and every frame is equal in all builds.
//
// Thread: one owner; no threads inside.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "runtime/node/node.h"
#include "runtime/sim/cluster/fault_plan.h"
#include "runtime/sim/cluster/training_record.h"
#include "runtime/sim/world/event_queue.h"
#include "runtime/sim/world/network.h"

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
  // Who computes at a node, each time it starts; empty: its processor, with the run's model.
  std::function<Result<std::unique_ptr<Trainer>>(std::size_t node, const NodeOptions& options)> trainer;
  // What the same run has learned where links or machines are others: ways in rounds learn the same wherever they are
  // (methods/lock_step.h), so they only have to find out what it costs. Null: unknown. For others it means nothing.
  std::shared_ptr<const std::vector<CurvePoint>> learned;
  // Strike besides, as planned. Requires: each names nodes of the cluster only.
  std::vector<PlannedFault> planned_faults;

  Duration step_of(std::size_t node) const {
    if (step_factors.empty()) return step;
    return from_seconds(to_seconds(step) * step_factors[node % step_factors.size()]);
  }
};

class Cluster {
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
  // Handles events up to `until` (virtual). False when nothing is left to happen.
  bool run_until(TimePoint until);
  TimePoint now() const { return now_; }
  // Null while killed.
  const Node* node(std::size_t i) const { return nodes_[i].node.get(); }
  bool all_complete() const;
  // Ends a process at once: links break, memory is gone.
  void kill(std::size_t i);
  // Starts it again with an empty state, a new stream, the same identity.
  void restart(std::size_t i);
  // Breaks every link between nodes of different groups and keeps them apart until heal().
  void partition(const std::vector<std::uint8_t>& group_of_node);
  void heal() { group_.assign(nodes_.size(), 0); }
  void reset_link_of(std::size_t i);
  std::uint64_t trace_hash() const { return trace_; }
  // Weights that the sum of everything published gives.
  const std::vector<std::int32_t>& oracle() const { return record_->oracle(); }

 private:
  struct Link {
    std::size_t end[2];
    bool open[2] = {true, true};
    TimePoint last_reach[2][2] = {};  // of frames towards end[i]: data, control
    bool backlogged[2] = {false, false};
  };
  struct FrameReaches {  // the downlink
    std::size_t link;
    int side;
    Bytes frame;
  };
  struct FrameArrives {
    std::size_t link;
    int side;
    Bytes frame;
  };
  struct LinkOpens {
    std::size_t link;
    int dialler;
  };
  struct CloseReaches {  // the far end's downlink
    std::size_t link;
    int side;
  };
  struct LinkBreaks {
    std::size_t link;
    int side;
    std::string reason;
  };
  struct DialFails {
    std::size_t node;
    std::uint64_t life;
    std::string address;
  };
  struct Wake {
    std::size_t node;
    std::uint64_t life;
  };
  struct ComputeDone {
    std::size_t node;
    std::uint64_t life;
  };
  struct BacklogEnds {
    std::size_t link;
    int side;
  };
  struct Fault {};
  struct Planned {
    std::size_t number;
  };
  struct Restart {
    std::size_t node;
  };
  struct Heal {
    std::uint64_t number;
  };
  using Event = std::variant<FrameReaches, FrameArrives, LinkOpens, CloseReaches, LinkBreaks, DialFails, Wake,
                             ComputeDone, BacklogEnds, Fault, Planned, Restart, Heal>;

  struct Slot {
    std::unique_ptr<Node> node;
    std::uint64_t life = 0;          // counts starts, so that events of an earlier life are dropped
    std::uint64_t started_life = 0;  // the life whose start() has been called
    TimePoint wake_at = never;
    std::variant<std::monostate, StepResult, models::Evaluation> compute;
    std::string last_note;
    std::optional<int> ended;
  };

  Cluster(const RunConfig& config, std::shared_ptr<const models::DataSet> data, ClusterOptions options);
  Result<std::unique_ptr<Node>> create_node(std::size_t i, NodeOptions options);
  Result<void> start_node(std::size_t i);

  void handle(Event& event);
  void on(FrameReaches& e);
  void on(FrameArrives& e);
  void on(LinkOpens& e);
  void on(CloseReaches& e);
  void on(LinkBreaks& e);
  void on(DialFails& e);
  void on(Wake& e);
  void on(ComputeDone& e);
  void on(BacklogEnds& e);
  void on(Fault& e);
  void on(Planned& e);
  bool kill_for(std::size_t victim, Duration away);
  void cut_for(const std::vector<std::uint8_t>& group, Duration apart);
  void on(Restart& e);
  void on(Heal& e);

  // Carries out what node i asks for; `from` is the sender of the frame under way, or i.
  void carry_out(std::size_t i, NodeOutbox& out, std::size_t from);
  void effect(std::size_t i, gossip::Send& e);
  void effect(std::size_t i, gossip::Dial& e);
  void effect(std::size_t i, gossip::Close& e);
  void effect(std::size_t i, StartStep& e);
  void effect(std::size_t i, StartEvaluation& e);
  void close_side(std::size_t link, int side, const std::string& reason);
  static gossip::LinkId id_of(std::size_t link, int side) {
    return gossip::LinkId{2 * link + static_cast<unsigned>(side)};
  }
  static std::string address_of(std::size_t i);
  NodeId node_id(std::size_t i) const;
  void trace(std::uint64_t kind, std::uint64_t a, std::uint64_t b, BytesView bytes = {});

  TrainingRecord::Nodes living() const;
  void finish_all();
  Result<SimResult> conclude();
  std::string last_words() const;

  RunConfig config_;
  std::shared_ptr<const models::DataSet> data_;
  ClusterOptions options_;
  Network network_;
  Prng chance_, step_costs_, faults_;
  EventQueue<Event> queue_;
  TimePoint now_{};
  std::vector<Slot> nodes_;
  std::vector<Link> links_;
  std::vector<std::uint8_t> group_;
  std::uint64_t partitions_ = 0;
  std::optional<TrainingRecord> record_;  // from the end of create() on
  std::uint64_t trace_ = 0;

  std::uint64_t link_resets_ = 0, restarts_ = 0;
  Duration computed_{0};  // by all nodes together
  bool stop_early_ = false, not_finite_ = false, finishing_ = false;
};

}  // namespace rumor::sim
