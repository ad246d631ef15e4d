// TrainingPeer: a whole node (runtime/node/node.h) on a host of a ProtocolWorld. A step really computes when it begins;
// its cost in virtual time is drawn.
//
// Thread: one owner.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "runtime/node/node.h"
#include "runtime/sim/world/sim_peer.h"

namespace rumor::sim {

class TrainingPeer final : public SimPeer {
 public:
  using Evaluate = std::function<models::Evaluation(Node&, const StartEvaluation&)>;
  // The driver of a node that serves a stage of a pipeline (runtime/stages).
  struct Stage {
    // Computes, and says what that costs.
    std::function<std::pair<Result<gossip::Made>, Duration>(const gossip::Work&)> make;
    // The next step takes this gradient; the weights are others after it.
    std::function<void(const gossip::MakeStep&)> begin_step;
  };
  // A step costs `step` for each of its mini-batches in turn, +-10 %; with smaller pictures, their share of the
  // arithmetic.
  TrainingPeer(std::unique_ptr<Node> node, Duration step, std::uint64_t chance_seed, Evaluate evaluate);

  void start(TimePoint now, gossip::Outbox& out) override;
  void on_link_up(const gossip::LinkUp& up, TimePoint now, gossip::Outbox& out) override;
  void on_frame(gossip::LinkId link, BytesView frame, TimePoint now, gossip::Outbox& out) override;
  void on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now,
                    gossip::Outbox& out) override;
  void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                      gossip::Outbox& out) override;
  void on_backlog(gossip::LinkId link, bool full, TimePoint now, gossip::Outbox& out) override;
  void on_time(TimePoint now, gossip::Outbox& out) override;
  void on_computed(TimePoint now, gossip::Outbox& out) override;
  // As a daemon does: the step under way is finished first.
  void leave(TimePoint now, gossip::Outbox& out) override;
  // Trains no more, as at the end of the run.
  void set_finished(bool finished, TimePoint now, gossip::Outbox& out) override;
  TimePoint next_deadline() const override { return node_->next_deadline(); }

  const gossip::Protocol& protocol() const override { return node_->protocol(); }
  const gossip::HaveSet& have() const override { return node_->replica().have(); }
  std::uint64_t fingerprint() const override { return node_->replica().fingerprint(); }
  const Replica* replica() const override { return &node_->replica(); }
  bool log_in_bounds() const override;
  std::string failure() const override;

  // Before start(). A collected step then costs nothing, since its gradient has been paid for.
  void set_stage(Stage stage) { stage_ = std::move(stage); }
  Result<void> revoke(const gossip::Revocation& revocation, TimePoint now, gossip::Outbox& out);

  Node& node() { return *node_; }
  const Node& node() const { return *node_; }
  // It has nothing more to do, whether or not that is a failure.
  bool has_ended() const { return ended_.has_value(); }
  // A step gave weights that are no numbers.
  bool not_finite() const { return not_finite_; }

 private:
  void forward(NodeOutbox& from, gossip::Outbox& out);

  std::unique_ptr<Node> node_;
  Duration step_;
  Prng costs_;
  Evaluate evaluate_;
  Stage stage_;
  struct Audited {};
  std::variant<std::monostate, StepResult, models::Evaluation, Audited, Result<gossip::Made>> computing_;
  std::uint64_t snapshots_ = 0;  // installed so far
  std::string last_note_;
  std::optional<int> ended_;  // its status
  bool not_finite_ = false;
};

// Options of a node on the host that `start` describes; `nodes` share the training data.
NodeOptions node_options(const PeerStart& start, std::size_t nodes);

}  // namespace rumor::sim
