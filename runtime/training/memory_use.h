// MemoryUse: the bytes that a training peer holds, by what they are for. Counted from the buffers themselves.
//
// Data sets are not in it, nor is memory that passes through: checkpoints on their way to the disk, snapshots, frames.
//
// Thread: plain values.
#pragma once

#include <cstdint>

#include "runtime/base/figures.h"

namespace rumor {

struct MemoryUse {
  // For each parameter. Broadcast with SGD has the first four, of four bytes a parameter each.
  std::uint64_t weights = 0;   // the replica's integers; where a GPU has them, too, both
  std::uint64_t view = 0;      // as floats, to compute with; a loop of another program has its own
  std::uint64_t gradient = 0;  // between steps also the weights that are evaluated; of another program: its weights as
                               // they were after the last step
  std::uint64_t residual = 0;
  std::uint64_t optimizer = 0;  // moments
  std::uint64_t states = 0;     // kept for auditors (runtime/AUDIT.md, "Segments")
  std::uint64_t hogwild = 0;    // the shared change and the workers' copies (models/optimizers/hogwild.h)
  // For each entry of updates, a few bytes: in flight; chosen, about to be, or waiting to be applied.
  std::uint64_t in_flight = 0, entries = 0;
  // For each row of a batch.
  std::uint64_t activations = 0;
  // Updates kept for others, as far as they are in memory.
  std::uint64_t log = 0;

  std::uint64_t of_parameters() const { return weights + view + gradient + residual + optimizer + states + hogwild; }
};

inline constexpr FigureRow<MemoryUse> memory_rows[] = {
    figure<&MemoryUse::weights>("weights").shown("weights", Form::bytes),
    figure<&MemoryUse::view>("view").shown("view", Form::bytes),
    figure<&MemoryUse::gradient>("gradient").shown("gradient", Form::bytes),
    figure<&MemoryUse::residual>("residual").shown("residual", Form::bytes),
    figure<&MemoryUse::optimizer>("optimizer").shown("optimizer", Form::bytes),
    figure<&MemoryUse::states>("states"),
    figure<&MemoryUse::hogwild>("hogwild"),
    figure<&MemoryUse::in_flight>("in_flight"),
    figure<&MemoryUse::entries>("entries").shown("entries", Form::bytes),
    figure<&MemoryUse::activations>("activations").shown("activations", Form::bytes),
    figure<&MemoryUse::log>("log").shown("log", Form::bytes),
};

}  // namespace rumor
