// Phases: what a node does next. It decides when training starts and ends, when a step, an evaluation or a checkpoint
// is due, and with which status the node ends.
//
//   catching_up -> training -> flushing -> finishing -> done -> ended
//
// Flushing: what the peer has learned and not sent yet leaves its residual, in updates of a twentieth of the
// parameters. All peers then hold it, and nothing of it is lost when this peer goes. Each update takes the largest part
// of the rest, so that seventeen of them, 5.7 bits a parameter, leave less than a hundredth of the squares where the
// residual has a normal or Laplace distribution, and five hundredths where few of its values are very large. Updates of
// a tenth to a half of the parameters took as many bits and left more, and their entries took three times the memory of
// the weights. exchange.flush_bits limits the bits; 0 leaves the phase out. A peer whose turn to train ends makes one
// update from its residual, too, of density_max (runtime/exchange/turns.h).
//
// Finishing lasts until the neighbours have finished too (runtime/exchange/finishing.h). Done: the last evaluation is
// made, then the node serves on or ends, as the options say. Ended can follow every phase.
//
// Thread: one owner, as Node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/exchange/finishing.h"
#include "runtime/node/audits.h"
#include "runtime/node/incoming.h"
#include "runtime/node/node_core.h"
#include "runtime/node/outgoing.h"

namespace rumor {

class Phases {
 public:
  Phases(NodeCore& core, Incoming& incoming, Outgoing& outgoing, Audits& audits)
      : core_(core), incoming_(incoming), outgoing_(outgoing), audits_(audits) {}

  void start(TimePoint now);
  // stop(), or a reason to end that the protocol has found.
  bool wants_to_end() const { return stopping_ || complaint().has_value(); }
  // Ends the node after the step under way.
  void stop() { stopping_ = true; }
  // The next checkpoint is due between this step and the next.
  void checkpoint_soon();
  // Requires: NodeCore::computed().
  void evaluated(const models::Evaluation& evaluation, Turn& turn);
  // The exit status where training cannot go on.
  static constexpr int training_failed = 1;
  // Requires: the node has not ended.
  void end(int status, Turn& turn);

  // Does what the state asks for after an input.
  void advance(Turn& turn);
  // The exit status, once, when the node has ended in this turn.
  std::optional<int> take_finished_status() { return std::exchange(finished_status_, std::nullopt); }

  // How far a flush is, for people; else empty.
  std::string waiting_for() const;

  // When advance() has something to do although nothing has arrived. Requires: the node has not ended.
  TimePoint deadline() const;
  // Trained to the end, in agreement with its neighbours and evaluated; or ended.
  bool complete() const {
    return (core_.phase == Phase::done && final_evaluation_done_) || core_.phase == Phase::ended;
  }

 private:
  struct Complaint {
    int status;
    std::string text;
    bool after_step = false;  // else at once
  };
  std::optional<Complaint> complaint() const;
  std::string taken_back() const;
  void change_phase(Turn& turn);
  void await_convergence(Turn& turn);
  void save_checkpoint_if_due(Turn& turn);
  SaveCheckpoint make_checkpoint() const;
  void compute(Turn& turn);
  // Whether a step can be an update from the residual alone.
  bool can_flush() const;
  // How many flushing updates exchange.flush_bits allow.
  std::size_t flushes_allowed() const;
  void flush(Turn& turn);
  // Says this peer's buffers to the others, and theirs to the trainer, as far as there is news.
  void exchange_buffers(Turn& turn);
  void share_buffers(Turn& turn);
  void start_evaluation(std::uint32_t rows, Turn& turn);
  bool keeps_checkpoints() const {
    return core_.options.checkpoint_every > Duration{0} && !core_.computing && !incoming_.lacks_weights();
  }
  bool run_is_over() const;
  bool trains() const { return core_.phase == Phase::training && !core_.options.observe; }
  bool evaluation_due(TimePoint now);

  NodeCore& core_;
  Incoming& incoming_;
  Outgoing& outgoing_;
  Audits& audits_;
  Finishing finishing_;
  bool stopping_ = false;
  bool final_evaluation_under_way_ = false, final_evaluation_done_ = false;
  std::size_t flushes_ = 0;  // done
  TimePoint next_step_{}, next_evaluation_{}, evaluation_began_{}, next_checkpoint_ = never;
  std::uint64_t evaluated_ = 0;  // fingerprint of the weights that an observer has evaluated last
  TimePoint next_sharing_{}, next_taking_{};  // of buffers
  std::uint64_t buffers_taken_ = 0;  // Protocol::buffers_hash() of what the trainer has
  std::optional<int> finished_status_;
};

}  // namespace rumor
