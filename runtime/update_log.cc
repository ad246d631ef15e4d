#include "runtime/update_log.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor {

namespace {
// Bookkeeping of an entry beside its payload, so that empty payloads are bounded too.
constexpr std::size_t overhead_bytes = 256;
std::size_t cost(const gossip::StoredUpdate& update) {
  return update.payload->size() + overhead_bytes;
}
}  // namespace

void UpdateLog::append(const gossip::StoredUpdate& update) {
  const bool fresh = updates_.emplace(update.header.key, update).second;
  RUMOR_CHECK(fresh);
  arrival_.push_back(update.header.key);
  bytes_ += cost(update);
  while (bytes_ > bytes_max_ && arrival_.size() > 1 && !mutant(11)) {
    const auto oldest = updates_.find(arrival_.front());
    RUMOR_CHECK(oldest != updates_.end());
    bytes_ -= cost(oldest->second);
    updates_.erase(oldest);
    arrival_.pop_front();
  }
}

void UpdateLog::erase(const UpdateKey& key) {
  const auto at = updates_.find(key);
  if (at == updates_.end()) return;
  bytes_ -= cost(at->second);
  updates_.erase(at);
  arrival_.erase(std::find(arrival_.begin(), arrival_.end(), key));
}

std::optional<gossip::StoredUpdate> UpdateLog::find(const UpdateKey& key) const {
  const auto at = mutant(12) ? updates_.lower_bound(key) : updates_.find(key);
  if (at == updates_.end()) return std::nullopt;
  return at->second;
}

std::vector<gossip::StoredUpdate> UpdateLog::tail(std::size_t bytes_max) const {
  std::vector<gossip::StoredUpdate> kept;
  std::size_t bytes = 0;
  for (auto key = arrival_.rbegin(); key != arrival_.rend(); ++key) {
    const gossip::StoredUpdate& update = updates_.at(*key);
    bytes += cost(update);
    if (bytes > bytes_max) break;
    kept.push_back(update);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace rumor
