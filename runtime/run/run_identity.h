// RunIdentity: what makes two peers peers of one run. Shared keys of the run file, the model's layout and the initial
// weights give the run id; peers with unlike ids refuse each other, and tell each other in which part they differ.
//
// A peer that wishes to take the run's weights (PROTOCOL.md 6.7) lacks one part, the initial weights, and learns what
// it needs of them from a StartNote.
//
// Thread: plain functions and values.
#pragma once

#include <optional>
#include <vector>

#include "models/weights/start_weights.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/run_part.h"
#include "runtime/base/types.h"
#include "runtime/run/run_config.h"

namespace rumor {

// Names the run: SHA-256 over the shared keys, the layout, the format versions and, where the run starts from given
// weights or trains adapters of frozen ones, their identity; cut to 16 bytes. `start`: null for weights from the seed.
RunId run_id(const RunConfig& config, const ParamLayout& layout, const models::StartWeights* start = nullptr);

// The parts of the same: keys, initial weights, tensors, in this order.
std::vector<RunPart> run_parts(const RunConfig& config, const ParamLayout& layout,
                               const models::StartWeights* start = nullptr);

// Enough of the weights that a run started from to compute its id.
struct StartNote {
  int grid_bits = 0;
  Hash256 hash;  // of the weights

  // grid_bits u8, hash [32].
  Bytes encode() const;
  // Nothing when these bytes are no note.
  static std::optional<StartNote> decode(BytesView bytes);
};

}  // namespace rumor
