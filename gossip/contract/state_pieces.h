// A trainer's state in pieces, as auditors fetch and check it (PROTOCOL.md 6.16).
//
// Thread: plain values, pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

inline constexpr std::size_t state_piece_bytes = limits::piece_bytes_max;

struct KeptState {
  Bytes bytes;
  Bytes list;    // SHA-256 of each piece of state_piece_bytes, the last one shorter, one after another
  Hash256 root;  // SHA-256 of the list
};

// A state to fetch.
struct WantedState {
  UpdateKey update;  // the state is that before it
  Hash256 root;
  std::uint64_t bytes = 0;
  std::vector<NodeId> holders;  // who may have it, the best first
};

// Requires: 0 < bytes.size() <= limits::state_bytes_max.
std::shared_ptr<const KeptState> keep_state(Bytes bytes);

// The number of pieces of a state of so many bytes.
constexpr std::uint64_t state_pieces(std::uint64_t bytes) {
  return (bytes + state_piece_bytes - 1) / state_piece_bytes;
}

}  // namespace rumor::gossip
