// StepRecorder: records a peer's own steps and puts the tape before each of its updates (runtime/AUDIT.md). In a run
// without records it does nothing.
//
// Thread: one owner, as Node. Memory: a have-set, and the states of a few segments (kept_states.h).
#pragma once

#include <optional>

#include "runtime/audit/kept_states.h"
#include "runtime/audit/tape.h"
#include "runtime/run/run_config.h"
#include "runtime/training/trainer.h"

namespace rumor::audit {

class StepRecorder {
 public:
  // Reads all of the training data in a run with records, for its hash.
  StepRecorder(const RunConfig& config, const Trainer& trainer, const models::Shard& shard);

  bool on() const { return start_.has_value(); }
  // The steps that are recorded can be made again.
  bool repeatable() const { return on() && start_->repeatable; }
  // The hash of the training data; zero where the steps cannot be made again.
  Hash256 data_hash() const { return start_ ? start_->data : Hash256{}; }
  // The trainer has been restored to its state behind this update of an earlier process, or behind later steps, which
  // nobody else knows of: nothing. Before the first step.
  void continues(const std::optional<UpdateKey>& point);

  // A step begins, at weights that hold these updates. Where it begins a segment the trainer's state is copied and
  // hashed. Requires: the trainer is idle.
  void began(StepRecord record, const gossip::HaveSet& view, const Trainer& trainer);
  // It is over, with an update or without.
  void ended(bool held);
  // Whether a step has been recorded that is in no tape yet.
  bool has_steps() const { return steps_ > 0; }

  // The payload of the update that the last step has made.
  Bytes payload(Bytes update);

  // The states behind the roots of own segments.
  const KeptStates& states() const { return states_; }

 private:
  bool begins_segment() const { return segment_ > 0 && steps_ == 0 && updates_ % segment_ == 0; }

  std::optional<TapeStart> start_;  // absent: the run has no records
  bool begun_ = false;              // the first record is written
  bool too_long_ = false;           // what follows cannot be recorded
  std::size_t steps_ = 0;           // in the tape
  std::uint64_t segment_;           // updates of each; 0: there are none
  std::uint64_t updates_ = 0, pieces_ = 0;  // made and drawn so far
  BatchRules rows_;
  KeptStates states_;
  struct Step {
    StepRecord record;
    gossip::HaveSet view;
  };
  std::optional<Step> under_way_;
  TapeWriter tape_;
};

// The start of a tape whose trainer is a new one.
TapeStart tape_start(const RunConfig& config, const models::DataSet* repeatable_data, const models::Shard& shard);

}  // namespace rumor::audit
