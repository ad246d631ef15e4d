#include "gossip/links/peer_scores.h"

#include <algorithm>
#include <cstdlib>

namespace rumor::gossip {

PeerScores::Score& PeerScores::touch(const NodeId& node, TimePoint now) {
  if (scores_.size() >= scores_max && !scores_.contains(node)) {
    const auto least = std::min_element(scores_.begin(), scores_.end(), [&](const auto& a, const auto& b) {
      const bool a_banned = a.second.banned_until > now, b_banned = b.second.banned_until > now;
      if (a_banned != b_banned) return b_banned;
      return std::abs(a.second.points) < std::abs(b.second.points);
    });
    scores_.erase(least);
  }
  const auto [at, fresh] = scores_.try_emplace(node);
  Score& score = at->second;
  if (fresh) score.decayed_at = now;
  // A hundredth a minute: after a day next to nothing is left.
  for (int i = 0; i < 1'500 && now - score.decayed_at >= decay_every; ++i) {
    score.points -= score.points / 100;
    score.decayed_at += decay_every;
  }
  score.decayed_at = std::max(score.decayed_at, now - decay_every);
  return score;
}

void PeerScores::has_delivered(const NodeId& node, TimePoint now) {
  Score& score = touch(node, now);
  score.points = std::min(score.points + delivered, delivered_max);
}

bool PeerScores::has_broken_promise(const NodeId& node, TimePoint now) {
  Score& score = touch(node, now);
  score.points += promise_broken;
  if (score.points >= linked_from) return false;
  score.banned_until = std::max(score.banned_until, now + idler_banned);
  score.points = provides_from;  // its points when it may come again
  return true;
}

void PeerScores::has_forged(const NodeId& node, TimePoint now) {
  touch(node, now).banned_until = now + forger_banned;
}

void PeerScores::has_overburdened(const NodeId& node, TimePoint now) {
  Score& score = touch(node, now);
  score.banned_until = std::max(score.banned_until, now + idler_banned);
}

bool PeerScores::is_banned(const NodeId& node, TimePoint now) const {
  const auto at = scores_.find(node);
  return at != scores_.end() && at->second.banned_until > now;
}

std::int64_t PeerScores::points(const NodeId& node) const {
  const auto at = scores_.find(node);
  return at == scores_.end() ? 0 : at->second.points;
}

bool PeerScores::may_provide(const NodeId& node) const {
  const auto at = scores_.find(node);
  return at == scores_.end() || at->second.points > provides_from;
}

}  // namespace rumor::gossip
