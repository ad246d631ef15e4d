#include "runtime/audit/kept_states.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::audit {

const KeptState& KeptStates::keep(std::uint64_t first, Bytes state, Parallel& parallel) {
  RUMOR_CHECK(states_.empty() || states_.back()->first < first);
  if (states_.size() == kept) states_.pop_front();
  auto hashes = gossip::piece_hashes(state, parallel);
  const Hash256 root = gossip::piece_root(state.size(), hashes);
  states_.push_back(std::make_shared<const KeptState>(KeptState{first, std::move(state), std::move(hashes), root}));
  return *states_.back();
}

std::shared_ptr<const KeptState> KeptStates::find(std::uint64_t first) const {
  for (const auto& state : states_)
    if (state->first == first) return state;
  return nullptr;
}

std::size_t KeptStates::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& state : states_) bytes += capacity_bytes(state->bytes, state->hashes);
  return bytes;
}

}  // namespace rumor::audit
