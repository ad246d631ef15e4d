// Shared by all that begin scans (gpu/device/table.h): the form of a step rule, and the room for tiles.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/device/table.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

inline Change form_of(StepRule::Kind kind) {
  switch (kind) {
    case StepRule::Kind::sgd: return Change::sgd;
    case StepRule::Kind::momentum: return Change::momentum;
    case StepRule::Kind::rmsprop: return Change::rmsprop;
    case StepRule::Kind::adam: return Change::adam;
    case StepRule::Kind::adamw: return Change::adamw;
    case StepRule::Kind::nadamw: return Change::nadamw;
    case StepRule::Kind::adaptive_revision: return Change::adaptive_revision;
  }
  RUMOR_CHECK(false);
  return Change::sgd;
}

// Room for the tiles of a scan of this many parameters.
inline std::size_t scan_tiles_of(std::uint32_t params) {
  return params / tile_params + 1;
}

}  // namespace rumor::gpu
