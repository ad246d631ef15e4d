// KeptStates: the trainer's states at the starts of a peer's own segments, for auditors who ask for them
// (runtime/AUDIT.md, "Segments").
//
// Thread: one owner. Memory: the states of the current segment and of the two before it, and of one that is handed out,
// as long as its holder has it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gossip/contract/piece_root.h"

namespace rumor::audit {

struct KeptState {
  std::uint64_t first;  // number of the segment's first update
  Bytes bytes;          // Trainer::carried_state()
  std::vector<Hash256> hashes;  // of its pieces
  Hash256 root;
};

class KeptStates {
 public:
  static constexpr std::size_t kept = 3;

  // Reads all of the state once. Requires: a later segment than those before.
  const KeptState& keep(std::uint64_t first, Bytes state, Parallel& parallel);
  // Null: it is not kept, any more or at all.
  std::shared_ptr<const KeptState> find(std::uint64_t first) const;
  std::size_t memory_bytes() const;

 private:
  std::deque<std::shared_ptr<const KeptState>> states_;  // ascending
};

}  // namespace rumor::audit
