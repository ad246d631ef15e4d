#include "runtime/exchange/live_peers.h"

#include <algorithm>

namespace rumor {

void LivePeers::heard(const NodeId& peer, TimePoint now) {
  const auto [at, fresh] = peers_.try_emplace(peer, Peer{now});
  if (fresh) return;
  const Duration gap = now - at->second.last;
  at->second.gap += (gap - at->second.gap) / 16;
  at->second.last = now;
}

Duration LivePeers::window() const {
  Duration longest{0};
  for (const auto& [id, peer] : peers_) longest = std::max(longest, peer.gap);
  return std::max<Duration>(2s, 10 * longest);
}

std::vector<NodeId> LivePeers::expire(TimePoint now) {
  const Duration allowed = window();
  std::vector<NodeId> silent;
  for (const auto& [id, peer] : peers_)
    if (now - peer.last > allowed) silent.push_back(id);
  for (const NodeId& id : silent) peers_.erase(id);
  return silent;
}

TimePoint LivePeers::next_expiry() const {
  const Duration allowed = window();
  TimePoint first = never;
  for (const auto& [id, peer] : peers_) first = std::min(first, peer.last + allowed + Duration{1});
  return first;
}

std::vector<NodeId> LivePeers::list() const {
  std::vector<NodeId> ids;
  for (const auto& [id, peer] : peers_) ids.push_back(id);
  return ids;
}

}  // namespace rumor
