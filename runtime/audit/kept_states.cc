#include "runtime/audit/kept_states.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::audit {

std::shared_ptr<const gossip::KeptState> KeptStates::keep(std::uint64_t first, Bytes state) {
  RUMOR_CHECK(states_.empty() || states_.back().first < first);
  if (states_.size() == kept) states_.pop_front();
  states_.push_back({first, gossip::keep_state(std::move(state))});
  return states_.back().state;
}

std::shared_ptr<const gossip::KeptState> KeptStates::find(std::uint64_t first) const {
  for (const Kept& kept_one : states_)
    if (kept_one.first == first) return kept_one.state;
  return nullptr;
}

std::size_t KeptStates::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Kept& kept_one : states_) bytes += capacity_bytes(kept_one.state->bytes, kept_one.state->list);
  return bytes;
}

}  // namespace rumor::audit
