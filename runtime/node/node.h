// Node: one peer, composed of protocol, replica, log and trainer. A function from (input, time) to effects;
// no I/O.
//
// The same object code is driven by runtime/daemon/loop/event_loop.cc over sockets and by
// runtime/sim/cluster/cluster.cc in virtual time. Call a handler, carry out the outbox in order, then ask
// next_deadline() and call on_time() when it is reached.
//
// Two exchanges (exchange.mode): "broadcast", every update to every peer, replicas that are equal; and "average"
// or "codistill", where each peer has a model of its own, the replica is its own public copy, and the neighbours' lie
// beside it (runtime/exchange/neighbourhood.h).
//
// Life: start -> (catch up) -> train until the run's samples are reached -> finish (every neighbour has finished
// and, but with models of their own, holds the same digest: runtime/exchange/finishing.h) -> Finished, or serve on, as
// the options say. stop() ends it cleanly at any point.
//
// Thread: one owner, but for trainer(), see runtime/training/trainer.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/exchange/in_flight_view.h"
#include "runtime/exchange/live_peers.h"
#include "runtime/exchange/neighbourhood.h"
#include "runtime/exchange/finishing.h"
#include "runtime/exchange/staleness.h"
#include "runtime/node/node_events.h"
#include "runtime/node/node_status.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/replica/disk.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/snapshots.h"
#include "runtime/replica/update_log.h"
#include "runtime/run/run_config.h"

namespace rumor {

struct NodeOptions {
  NodeId node;
  StreamId stream;                           // gossip::stream_of(node, ...)
  std::shared_ptr<const gossip::Keys> keys;  // of `node`; never null
  std::vector<std::string> seeds, advertise, known_addresses;
  gossip::AdmissionRule rule;   // its owner is the run file's
  Bytes admit;                  // what to show of a token (gossip/trust/admission.h)
  std::int64_t unix_start = 0;  // seconds since 1970 at TimePoint 0
  bool observe = false;         // take part without training
  models::Shard shard;
  // Where the run starts; null: from its seed. Let go once the replica has its copy.
  std::shared_ptr<const models::StartWeights> start;
  std::uint64_t chance_seed = 0;  // of the protocol's generator; from the operating system in the daemon
  std::optional<std::uint64_t>
      until_samples;              // end once the run has this many; else train run.samples, then serve on
  Duration evaluation_every{2s};  // on the test set, while training, and at most a tenth of the time; 0: at the end
  std::uint32_t evaluation_rows = 2000;  // of the test set, while running; all of it at the end
  Duration checkpoint_every{0};          // 0: none; at most limits::checkpoint_bytes_per_second
  bool report_applied = false;           // Applied and Published effects
  Disk* disk = nullptr;                  // outlives the node; null: the log is in memory and short
};

class Node final : private gossip::UpdateStore {
 public:
  // Errors: Errc::usage, Errc::limit (model, data, shard and exchange do not fit together).
  static Result<std::unique_ptr<Node>> create(const RunConfig& config,
                                              std::shared_ptr<const models::DataSet> data,
                                              NodeOptions options);
  // The same with another trainer than the built-in models: no data set, and nothing is evaluated unless it can.
  static Result<std::unique_ptr<Node>> create(const RunConfig& config, std::unique_ptr<Trainer> trainer,
                                              NodeOptions options);
  ~Node() override;

  // Reads the log and what was being downloaded from NodeOptions.disk; before restore(). Returns a line for
  // people about damage, or nothing. Errors: Errc::mismatch when they are of another run.
  Result<std::string> open_disk();
  // Takes up a checkpoint; before start(). The residual is taken over only if this node wrote it.
  // Errors: Errc::corrupt, Errc::mismatch; the node is unchanged then.
  Result<void> restore(BytesView checkpoint);

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
  void on_evaluated(const models::Evaluation& evaluation, TimePoint now, NodeOutbox& out);
  // Trains no more: agrees with its neighbours as at the end of the run, then Finished{0}.
  void finish(TimePoint now, NodeOutbox& out);
  // The next checkpoint is due between this step and the next.
  void checkpoint_soon();
  // Graceful end: after the step under way a checkpoint, goodbye to the links, Finished{0}.
  void stop(TimePoint now, NodeOutbox& out);

  TimePoint next_deadline() const;

  // ---- questions ----
  Trainer& trainer() { return *trainer_; }
  // Its view shows the weights; nothing but questions about status may be asked of the node afterwards.
  std::unique_ptr<Trainer> release_trainer();
  const Replica& replica() const { return replica_; }
  const gossip::Protocol& protocol() const { return *protocol_; }
  const UpdateLog& log() const { return log_; }
  const RunConfig& config() const { return config_; }
  const RunId& run() const { return run_; }
  // Training samples behind the run, all peers together; with models of their own, as far as this one can tell.
  std::uint64_t samples() const;
  // Where peers have models of their own; null: they broadcast.
  const Neighbourhood* neighbourhood() const { return neighbourhood_ ? &*neighbourhood_ : nullptr; }
  const TrainingFigures& figures() const { return figures_; }
  bool training() const { return phase_ == Phase::training; }
  RunForm form() const { return {run_, trainer_->layout(), config_.grid_bits}; }
  NodeStatus status(TimePoint now) const;
  // Trained to the end, in agreement with its neighbours and evaluated; or ended.
  bool complete() const {
    return (phase_ == Phase::done && final_evaluation_done_) || phase_ == Phase::ended;
  }

  void check_invariants() const;

 private:
  enum class Phase : std::uint8_t { catching_up, training, finishing, done, ended };

  Node(const RunConfig& config, NodeOptions options, std::unique_ptr<Trainer> trainer, RunId run);

  // gossip::UpdateStore
  const gossip::HaveSet& have() const override { return replica_.have(); }
  gossip::ReplicaDigest digest() const override { return replica_.digest(); }
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const override { return log_.find(key); }
  Result<gossip::Accepted> accept(const gossip::StoredUpdate& update) override;
  const std::set<gossip::Revocation>& revocations() const override { return replica_.revocations(); }
  Result<void> revoke(const gossip::Revocation& revocation) override;
  bool verify() const override { return replica_.verify(); }
  Result<void> take_back(const UpdateKey& key) override;
  std::unique_ptr<gossip::LinkCoder> coder_for_link() const override;
  bool keeps(const UpdateKey& key) const override { return log_.contains(key); }
  gossip::SnapshotPort& snapshots() override { return snapshots_; }
  void acknowledged(const gossip::HaveSet& by_all, TimePoint now) override { log_.acknowledged(by_all, now); }
  Result<void> install(ReplicaState state);
  void replay_log();
  void tell_of_log(TimePoint now, NodeOutbox& out);
  void tell_of_brake(NodeOutbox& out);

  // Each handler ends here: forward the protocol's effects, then do what the new state asks for.
  void advance(TimePoint now, NodeOutbox& out);
  void change_phase(TimePoint now, NodeOutbox& out);
  void await_convergence(TimePoint now, NodeOutbox& out);
  void maybe_compute(TimePoint now, NodeOutbox& out);
  bool waits_for_others(TimePoint now);
  bool sits_out(TimePoint now);
  bool has_time_to_apply() const;
  TimePoint gives_up_waiting() const;
  std::string waits_for() const;
  void start_step(TimePoint now, NodeOutbox& out);
  void remember(compress::SparseUpdate update);
  void start_evaluation(std::uint32_t rows, NodeOutbox& out);
  void bring_view_up();
  std::size_t draw_model(bool tells);
  void publish(StepResult result, TimePoint now, NodeOutbox& out);
  Bytes make_checkpoint() const;
  void end(int status, TimePoint now, NodeOutbox& out);
  std::uint64_t samples_wanted() const;
  double rate_now() const;
  double density_now() const;
  bool tells_next() const;
  double progress() const;
  std::size_t live_count() const;
  std::string complaint(int& status) const;

  RunConfig config_;
  NodeOptions options_;
  RunId run_;
  std::unique_ptr<Trainer> trainer_;
  Replica replica_;
  std::optional<Neighbourhood> neighbourhood_;
  UpdateLog log_;
  Snapshots snapshots_;
  InFlightView in_flight_;
  Staleness staleness_;
  LivePeers live_;
  std::unique_ptr<gossip::Protocol> protocol_;
  gossip::Outbox protocol_out_;

  Phase phase_ = Phase::catching_up;
  TimePoint now_{};         // of the handler under way: accept() needs it
  bool computing_ = false;  // a step or an evaluation is with the driver
  bool stopping_ = false;
  bool final_evaluation_done_ = false;
  bool complete_evaluation_ = false;  // the evaluation under way is the final one
  std::optional<TimePoint> last_step_;  // when the last step began
  std::optional<TimePoint> waits_since_;  // for others, by the rules of the run file
  TimePoint next_step_{}, next_evaluation_{}, evaluation_began_{}, next_checkpoint_ = never;
  Finishing finishing_;
  std::uint64_t own_seq_ = 0, own_period_ = 0;
  std::optional<std::uint64_t> samples_at_end_;  // with models of their own: what it took for enough
  std::uint32_t samples_held_ = 0;  // of own steps since the last own update
  // Changes of others since the last own step began, where the optimizer asks for them; none when they had more
  // entries than the model parameters.
  std::vector<compress::SparseUpdate> others_;
  std::uint64_t others_entries_ = 0;
  bool wants_others_;
  std::vector<gossip::UpdateHeader> applied_;  // since the last drain, when report_applied

  std::uint64_t dropped_told_ = 0;
  TimePoint tell_dropped_{};
  bool brake_told_ = false;
  bool begins_anyway_ = false;  // in the early phase: nobody else has
  TrainingFigures figures_;
  compress::CompressorStats compression_;  // as of a step some seconds ago
  TimePoint next_survey_{};
  MemoryUse trainer_memory_;               // as of the last time the trainer was ours
  std::optional<int> finished_status_;     // set once on ending, until Finished has gone out
};

}  // namespace rumor
