// KeptStates: the trainer's states at the starts of a peer's own segments, for auditors who ask for them
// (runtime/AUDIT.md, "Segments").
//
// Thread: one owner. Memory: the states of the current segment and of the two before it, and of one that is handed out,
// as long as its holder has it.
#pragma once

#include <deque>
#include <memory>

#include "gossip/contract/state_pieces.h"

namespace rumor::audit {

class KeptStates {
 public:
  static constexpr std::size_t kept = 3;

  // first: the number of the segment's first update, later than those before. Hashes all of the state.
  std::shared_ptr<const gossip::KeptState> keep(std::uint64_t first, Bytes state);
  // Null: it is not kept, any more or at all.
  std::shared_ptr<const gossip::KeptState> find(std::uint64_t first) const;
  std::size_t memory_bytes() const;

 private:
  struct Kept {
    std::uint64_t first;
    std::shared_ptr<const gossip::KeptState> state;
  };
  std::deque<Kept> states_;  // ascending
};

}  // namespace rumor::audit
