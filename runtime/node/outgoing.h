// Outgoing: own steps and own updates. It plans a step, takes its result, and publishes the update that it made.
//
// Thread: one owner, as Node.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "compress/select/compressor.h"
#include "runtime/audit/step_recorder.h"
#include "runtime/node/incoming.h"
#include "runtime/node/node_core.h"

namespace rumor {

class Outgoing {
 public:
  Outgoing(NodeCore& core, Incoming& incoming)
      : core_(core), incoming_(incoming), recorder_(core.config, *core.trainer, core.options.shard) {}

  // Requires: the trainer is idle.
  void start_step(Turn& turn);
  // A step that sends this share of the parameters from the residual. Requires: the trainer is idle and flushes(), and
  // the protocol may publish.
  void start_flush(double density, Turn& turn);
  // Returns false when training cannot go on: the reason has been noted then. Requires: NodeCore::computed().
  bool step_done(StepResult result, Turn& turn);

  // The trainer has been restored from a checkpoint that was made behind this update, or at none: nothing.
  void restored(const std::optional<UpdateKey>& point) { recorder_.continues(point); }
  // The own update behind which the trainer's state is now; nothing where it has made steps since, or there is none.
  std::optional<UpdateKey> point() const;

  // The states behind the roots of own segments (runtime/AUDIT.md).
  const audit::KeptStates& kept_states() const { return recorder_.states(); }
  // Zero where nobody can make the steps again.
  Hash256 data_hash() const { return recorder_.data_hash(); }

  // As of a step some seconds ago.
  const compress::CompressorStats& compression() const { return compression_; }

 private:
  void count(const StepResult& result);
  void publish(StepResult result, Turn& turn);
  void record(const StepPlan& plan);
  std::string range_end_text_of(std::uint32_t position) const;
  void warn_of_range(std::span<const std::uint32_t> positions, Turn& turn);

  NodeCore& core_;
  Incoming& incoming_;
  std::optional<TimePoint> last_step_;  // when the last step began
  std::uint32_t samples_held_ = 0;      // of own steps since the last own update
  compress::CompressorStats compression_;
  TimePoint next_survey_{};
  audit::StepRecorder recorder_;
  std::set<std::string> at_range_end_;  // tensors that have been warned of
};

}  // namespace rumor
