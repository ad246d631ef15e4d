#include "runtime/exchange/staleness.h"

#include <algorithm>

#include "models/kernels/portable_math.h"
#include "runtime/base/text.h"

namespace rumor {

std::uint64_t Staleness::heard(const NodeId& peer, const UpdateKey& key, std::uint64_t period,
                               std::uint64_t own_period, std::uint64_t own_updates) {
  const std::uint64_t staleness = own_period > period ? own_period - period : 0;
  Peer& p = peers_[peer];
  PeerStaleness& f = p.figures;
  if (f.updates == 0 || f.stream != key.stream) {
    p = Peer{.figures = {peer, key.stream},
             .newest = key.seq,
             .ahead = static_cast<std::int64_t>(own_updates) - static_cast<std::int64_t>(key.seq)};
    f.mean = static_cast<double>(staleness);
  }
  p.newest = std::max(p.newest, key.seq);
  p.period = std::max(p.period, period);
  if (own_updates == 0) p.ahead = -static_cast<std::int64_t>(p.newest);  // still catching up on what was before us
  ++f.updates;
  f.mean += (static_cast<double>(staleness) - f.mean) / 16;
  f.last = staleness;
  f.max = std::max(f.max, staleness);
  ++heard_since_step_;
  return staleness;
}

double Staleness::mean() const {
  double sum = 0;
  for (const auto& [node, peer] : peers_) sum += peer.figures.mean;
  return peers_.empty() ? 0 : sum / static_cast<double>(peers_.size());
}

double Staleness::brake() const {
  const double late = mean();
  if (rules_.brake_from == 0 || late <= rules_.brake_from) return 1;
  return (2 * rules_.brake_from + 1) / (2 * late + 1);
}

double Staleness::rate_factor() const {
  const double late = mean();
  const bool scales = rules_.scale > 0 && late > 1;
  return std::min(brake(), scales ? models::portable_exp(-rules_.scale * models::portable_log(late)) : 1.0);
}

std::uint64_t Staleness::wanted() const {
  return std::min<std::uint64_t>(rules_.soft_sync, peers_.size());
}

std::int64_t Staleness::lead(const Peer& peer, std::uint64_t own_updates) const {
  return static_cast<std::int64_t>(own_updates) - static_cast<std::int64_t>(peer.newest) - peer.ahead;
}

const Staleness::Peer* Staleness::slowest_behind(std::uint64_t own_updates) const {
  if (rules_.steps_ahead == 0) return nullptr;
  const Peer* slowest = nullptr;
  std::int64_t most = rules_.steps_ahead;
  for (const auto& [node, peer] : peers_) {
    if (lead(peer, own_updates) <= most) continue;
    most = lead(peer, own_updates);
    slowest = &peer;
  }
  return slowest;
}

const Staleness::Peer* Staleness::oldest() const {
  if (rules_.staleness_bound == 0) return nullptr;
  const Peer* oldest = nullptr;
  for (const auto& [node, peer] : peers_) {
    if (peer.period + rules_.staleness_bound > published_) continue;
    if (oldest == nullptr || peer.period < oldest->period) oldest = &peer;
  }
  return oldest;
}

std::string Staleness::waits_for(std::uint64_t own_updates) const {
  if (const Peer* slowest = slowest_behind(own_updates))
    return str("peer ", slowest->figures.node.brief(), " to catch up: we are ", lead(*slowest, own_updates),
               " updates ahead of it, exchange.steps_ahead = ", rules_.steps_ahead);
  if (const Peer* peer = oldest())
    return str("a newer update of peer ", peer->figures.node.brief(), ": its newest is ", published_ - peer->period,
               " updates behind ours, exchange.staleness_bound = ", rules_.staleness_bound);
  if (is_short())
    return str(heard_since_step_, " of ", wanted(), " updates of others have come since the last step, exchange.",
               "soft_sync = ", rules_.soft_sync);
  return {};
}

std::vector<PeerStaleness> Staleness::peers() const {
  std::vector<PeerStaleness> all;
  for (const auto& [node, peer] : peers_) all.push_back(peer.figures);
  return all;
}

}  // namespace rumor
