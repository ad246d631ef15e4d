// UpdateEncoder: how many entries an update may have, and its payload: the same for every trainer.
//
// A payload never has more than limits::payload_bytes_max, whatever the density, nor more than the run file's budget in
// bytes (compress/select/budget.h). Entries that are cut off wait in the residual.
//
// Thread: one caller at a time. Memory: none to speak of.
#pragma once

#include <optional>

#include "compress/select/budget.h"
#include "runtime/base/limits.h"
#include "runtime/run/run_config.h"
#include "runtime/training/step.h"

namespace rumor {

class UpdateEncoder {
 public:
  // Without a budget in bytes.
  UpdateEncoder() = default;
  UpdateEncoder(const RunConfig& config, std::uint32_t params);

  // Before a step: tells the compressor how many entries to choose.
  void plan(const StepPlan& plan, compress::Compressor& compressor);
  // The canonical payload of the entries that were chosen, or of as many as fit. Errors: those of `chosen`.
  Result<Bytes> encode(compress::ChosenEntries& chosen);
  // The same into the result of a step, with the positions that its guard left out.
  Result<void> encode(compress::ChosenEntries& chosen, StepResult& result);

 private:
  std::optional<compress::ByteBudget> budget_;  // where the run file has one in bytes
  std::uint64_t bytes_max_ = limits::payload_bytes_max;
  double seconds_ = 0;                          // since the last update that the budget was asked about
};

}  // namespace rumor
