// StepPlan, StepResult: what the node tells a trainer about its next step, and what the step brings back.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/payload/update.h"
#include "compress/select/compressor.h"
#include "runtime/base/types.h"

namespace rumor {

struct StepPlan {
  double rate = 0;         // this peer's share of the learning rate
  double density = 0.001;  // not used where the run file has a budget in bytes
  std::uint64_t period = 0;
  // Mini-batches of this step, where the trainer takes_batches(); 0: as many as the run file says.
  std::uint32_t batches = 0;
  double seconds = 0;  // since the last step began; 0: there was none
  bool hold = false;   // no update: the change waits in the residual
  bool flush = false;  // no mini-batch: an update of this density from the residual alone
  // Changes of other peers since the last step began; only where Trainer::wants_changes_of_others().
  std::vector<compress::SparseUpdate> others = {};
  std::size_t peers = 1;  // live ones, this one included
  bool survey = false;    // asks for StepResult::compression, a pass over all parameters
  std::uint32_t size = 0;  // pixels a side of the pictures to learn from (data.resolution); 0: as they are
  double adam_factor = 1;  // RunConfig::adam_factor_for()
  bool drop_residual = false;  // first: it is of a turn long past (runtime/exchange/turns.h)

  // Only for a trainer with an own model. No update while the squared norm of the residual and the change is at most
  // drift_bound; 0: always an update.
  double drift_bound = 0;
  // How many other peers' models were given to OwnModel::learn_from().
  std::size_t teachers = 0;

  // The arithmetic of a step in forward passes: a backward pass counts as two, a teacher's prediction as one.
  static constexpr std::int64_t own_passes = 3;
  std::int64_t passes() const { return own_passes + static_cast<std::int64_t>(teachers); }
};

struct StepResult {
  bool held = false;  // there is no update: the plan held it back, or the own model has not drifted
  bool undone = false;  // held, too: an outside loop's change was not finite or far too large
  compress::SparseUpdate update;
  Bytes payload;  // the canonical encoding of `update`
  // Positions whose entries wait because their weights are near the end of the grid (compress/select/range_guard.h).
  std::vector<std::uint32_t> at_range_end;
  std::uint64_t period = 0;
  std::uint32_t samples = 0;
  double loss = 0;      // mean over the batch
  std::string failure;  // empty, or why training cannot go on (a non-finite gradient)
  std::optional<compress::CompressorStats> compression;  // where the plan asks for it, and nothing failed
};

}  // namespace rumor
