// SparseUpdate: one update as positions and signs; and its payload bytes, specified in compress/FORMAT.md.
//
// Thread: plain functions and values.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::compress {

// Entry e moves parameter index[e] by step units of the weight grid, down where negative[e] is 1.
struct SparseUpdate {
  std::int32_t step = 0;               // > 0 unless there are no entries, then 0
  std::vector<std::uint32_t> index;    // strictly ascending positions in the flat vector
  std::vector<std::uint8_t> negative;  // 0 or 1, one per entry
  bool operator==(const SparseUpdate&) const = default;
};

// The canonical payload: one update, one encoding.
// Requires: index ascending and < layout.params(), sizes equal, step > 0 iff there are entries.
Bytes encode(const ParamLayout& layout, const SparseUpdate& update);

// Accepts exactly what encode() writes: encode(decode(b)) == b for every accepted b.
// Work and memory are linear in payload.size(); nothing is allocated before the counts are proven possible.
// Errors: Errc::corrupt with what is wrong and where.
Result<SparseUpdate> decode(const ParamLayout& layout, BytesView payload);

}  // namespace rumor::compress
