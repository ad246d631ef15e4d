// Node: one peer. It composes the protocol, the replica with its log, the exchange of the run's mode and the trainer.
// It is a function from (input, time) to effects, without I/O.
//
// The same object code is driven by runtime/daemon/loop/event_loop.cc over sockets and by
// runtime/sim/cluster/cluster.cc in virtual time. Call a handler, carry out the outbox in order, then ask
// next_deadline() and call on_time() when it is reached.
//
// Each handler is a turn (turn.h): the input, then the work that the new state asks for. The parts are
//
//   incoming.h   the store of updates that the protocol writes to
//   outgoing.h   own steps and own updates
//   audits.h     segments of other peers made again
//   staged_steps.h  own steps where the run is a stage of a larger model
//   phases.h     what the node does next, from catching up to the end
//   exchange.h   how updates pass between this peer's model and other peers, one class for each exchange.mode
//
// Thread: one owner, but for trainer(), see runtime/training/trainer.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/exchange/neighbourhood.h"
#include "runtime/node/audits.h"
#include "runtime/node/incoming.h"
#include "runtime/node/node_core.h"
#include "runtime/node/node_events.h"
#include "runtime/node/node_options.h"
#include "runtime/node/node_status.h"
#include "runtime/node/outgoing.h"
#include "runtime/node/phases.h"
#include "runtime/node/staged_steps.h"
#include "runtime/run/run_config.h"

namespace rumor {

class Node final {
 public:
  // Errors: Errc::usage, Errc::limit (model, data, shard and exchange do not fit together).
  static Result<std::unique_ptr<Node>> create(const RunConfig& config,
                                              std::shared_ptr<const models::DataSet> data,
                                              NodeOptions options);
  // The same with another trainer than the built-in models: no data set, and evaluations only if it can make them.
  static Result<std::unique_ptr<Node>> create(const RunConfig& config, std::unique_ptr<Trainer> trainer,
                                              NodeOptions options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // Reads the log and the download in progress from NodeOptions.disk; before restore(). Returns a line for
  // people about damage, or nothing. Errors: Errc::mismatch when they are of another run.
  Result<std::string> open_disk();
  // Takes up a checkpoint; before start(). The residual is taken over only if this node wrote it.
  // Errors: Errc::corrupt, Errc::mismatch; the node is unchanged then.
  Result<void> restore(BytesView checkpoint);
  // Takes up the table of contributions that was saved with a checkpoint; before start(). Errors: those of
  // Contributions::decode; the samples of earlier updates are then unknown, but for those that the log has.
  Result<void> restore_contributions(BytesView table);

  // ---- inputs ----
  void start(TimePoint now, NodeOutbox& out);
  void on_link_up(const gossip::LinkUp& up, TimePoint now, NodeOutbox& out);
  void on_frame(gossip::LinkId link, BytesView frame, TimePoint now, NodeOutbox& out);
  void on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now, NodeOutbox& out);
  void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now, NodeOutbox& out);
  void on_backlog(gossip::LinkId link, bool full, TimePoint now, NodeOutbox& out);
  void on_time(TimePoint now, NodeOutbox& out);
  // As gossip::Protocol has them.
  void set_rule(gossip::AdmissionRule rule, TimePoint now, NodeOutbox& out);
  void set_addresses(std::vector<std::string> addresses, TimePoint now, NodeOutbox& out);
  void ask_to_be_dialled(TimePoint now, NodeOutbox& out);
  Result<void> revoke(const gossip::Revocation& revocation, TimePoint now, NodeOutbox& out);
  void on_step_done(StepResult result, TimePoint now, NodeOutbox& out);
  void on_made(Result<gossip::Made> made, TimePoint now, NodeOutbox& out);  // gossip::Work is done, or unreadable
  void on_evaluated(const models::Evaluation& evaluation, TimePoint now, NodeOutbox& out);
  void on_audited(TimePoint now, NodeOutbox& out);  // the slice of StartAudit is made
  // Trains no more: agrees with its neighbours as at the end of the run, then Finished{0}.
  void finish(TimePoint now, NodeOutbox& out);
  // The next checkpoint is due between this step and the next.
  void checkpoint_soon() { phases_.checkpoint_soon(); }
  // Graceful end: after the step under way a checkpoint, goodbye to the links, Finished{0}.
  void stop(TimePoint now, NodeOutbox& out);

  TimePoint next_deadline() const;

  // ---- questions ----
  Trainer& trainer() { return *core_.trainer; }
  // Its view shows the weights. Only status() may be called afterwards.
  std::unique_ptr<Trainer> release_trainer();
  const Replica& replica() const { return incoming_.replica(); }
  const gossip::Protocol& protocol() const { return *core_.protocol; }
  const UpdateLog& log() const { return incoming_.log(); }
  const RunConfig& config() const { return core_.config; }
  const RunId& run() const { return core_.run; }
  const NodeId& self() const { return core_.options.node; }
  const StreamId& stream() const { return core_.options.stream; }
  const RunForm& form() const { return incoming_.form(); }
  // Training samples behind the run, all peers together; an estimate where peers have models of their own.
  std::uint64_t samples() const { return core_.exchange->samples(); }
  // The trainer's states at the starts of own segments, for auditors (runtime/AUDIT.md).
  const audit::KeptStates& kept_states() const { return outgoing_.kept_states(); }
  // Segments of other peers that this one has made again.
  const std::map<NodeId, AuditCounts>& audits() const { return audits_.counts(); }
  std::uint32_t withheld_in_a_row(const NodeId& peer) const { return audits_.withheld_in_a_row(peer); }
  // Null: peers have no models of their own.
  const Neighbourhood* neighbourhood() const { return core_.exchange->neighbourhood(); }
  // Null: the run is no stage.
  const gossip::Pipeline* pipeline() const { return staged_.pipeline(); }
  const TrainingFigures& figures() const { return core_.figures; }
  bool training() const { return core_.phase == Phase::training; }
  // It has all that one other peer had when they met, or nobody answers.
  bool caught_up() const { return core_.phase != Phase::catching_up; }
  bool complete() const { return phases_.complete(); }
  NodeStatus status(TimePoint now) const;
  StageStatus stage_status(TimePoint now) const { return staged_.status(now); }

  void check_invariants() const;

 private:
  Node(const RunConfig& config, NodeOptions options, std::unique_ptr<Trainer> trainer, RunId run);

  // One turn: `input` takes it, then the node does what the new state asks for.
  template <class Input>
  void take_turn(TimePoint now, NodeOutbox& out, const Input& input);
  void end_turn(Turn& turn);
  void advance_stage(Turn& turn);
  bool has_time_to_apply() const;

  bool begins_anew_ = false;  // the trainer of a restored node, as Node::restore() says why
  NodeCore core_;
  Incoming incoming_;
  Outgoing outgoing_;
  Audits audits_;
  Phases phases_;
  StagedSteps staged_;
  TimePoint last_turn_{};
};

}  // namespace rumor
