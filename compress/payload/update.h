// SparseUpdate: one update as positions and signs; and its payload bytes, specified in compress/FORMAT.md.
//
// Thread: plain functions and values. Work is spread over threads only where the caller hands in a Parallel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compress/payload/rice_kernels.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::compress {

// Entry e moves parameter index[e] by its step, in units of the weight grid, down if negative[e] is 1. The step is that
// of all entries, or of the entry's tensor. Each update has one form: if all tensors have the same step, tensor_step is
// empty (normalize_steps() ensures it).
struct SparseUpdate {
  std::int32_t step = 0;               // > 0 where there are entries and tensor_step is empty, else 0
  std::vector<std::uint32_t> index;    // strictly ascending positions in the flat vector
  std::vector<std::uint8_t> negative;  // 0 or 1, one per entry
  std::vector<std::int32_t>
      tensor_step;  // empty, or one per tensor: 0 without entries, else > 0, not all equal
  bool operator==(const SparseUpdate&) const = default;
};

// One that several have. Each of them counts its part of the memory.
using SharedUpdate = std::shared_ptr<const SparseUpdate>;
inline std::size_t part_bytes(const SharedUpdate& update) {
  const std::size_t all = sizeof *update + capacity_bytes(update->index, update->negative, update->tensor_step);
  return all / static_cast<std::size_t>(update.use_count());
}

// Entries next to each other that share a step.
struct StepRun {
  std::size_t first = 0;  // entry
  std::size_t count = 0;
  std::int32_t step = 0;
};
// The runs of an update in order, which together are all of its entries: how to walk entries with their step.
// Requires: `update` as encode() wants it.
std::vector<StepRun> step_runs(const ParamLayout& layout, const SparseUpdate& update);

// Normalizes the steps: a tensor_step whose steps are all equal becomes `step`.
// Requires: tensor_step is empty, or one per tensor, 0 exactly where there are no entries.
void normalize_steps(SparseUpdate& update);

// How to work. The bytes are the same whatever it says.
struct CodecOptions {
  Parallel* parallel = nullptr;       // null: one segment after another on the caller's thread
  const RiceKernels* rice = nullptr;  // null: the fastest of this processor
  const RiceKernels& kernels() const { return rice != nullptr ? *rice : rice_kernels(); }
};

// The canonical payload: one update, one encoding.
// Requires: index ascending and < layout.params(), sizes equal, steps as above; checked.
Bytes encode(const ParamLayout& layout, const SparseUpdate& update, const CodecOptions& options = {});

// Accepts exactly what encode() writes: encode(decode(b)) == b for every accepted b.
// Work and memory are linear in payload.size(); nothing is allocated before the counts are proven possible.
// Errors: Errc::corrupt, with the reason and the place.
Result<SparseUpdate> decode(const ParamLayout& layout, BytesView payload, const CodecOptions& options = {});

// The same into `out`, whose memory is reused. On error `out` is empty.
Result<void> decode_into(const ParamLayout& layout, BytesView payload, SparseUpdate& out,
                         const CodecOptions& options = {});

}  // namespace rumor::compress
