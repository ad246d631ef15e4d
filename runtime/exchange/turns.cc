#include "runtime/exchange/turns.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace rumor {

namespace {

constexpr Duration patience_min = 10s;
constexpr std::uint64_t flush_from = 8;  // shorter turns would be mostly flushes

}  // namespace

Turns::Turns(const TurnRules& rules, Place place)
    : trainers_(rules.trainers > 0 ? rules.trainers : place.shards),
      updates_(rules.turn_updates),
      groups_((place.shards + trainers_ - 1) / trainers_),
      group_(place.shard % groups_),
      expected_((place.shards - group_ + groups_ - 1) / groups_) {
  RUMOR_CHECK(rules.turn_updates >= 1 && place.shard < place.shards);
}

bool Turns::advance(std::uint64_t period) {
  const std::uint64_t before = turn_of(newest_);
  newest_ = std::max(newest_, period);
  if (!on() || turn_of(newest_) == before) return false;
  judge_turn();
  return true;
}

// How many trained in the turn that has ended.
void Turns::judge_turn() {
  const std::size_t seen = trained_.size() + (std::exchange(has_trained_, false) ? 1 : 0);
  trained_.clear();
  if (seen == 0) return;
  expected_ = seen;
  if (2 * seen <= trainers_)
    along_ = std::min(along_ + 1, groups_ - 1);
  else if (seen > trainers_ && along_ > 0)
    --along_;
}

bool Turns::heard(const NodeId& peer, std::uint64_t period, TimePoint now) {
  if (quiet_since_) gap_ += (now - *quiet_since_ - gap_) / 16;
  quiet_since_ = now;
  const bool begins = advance(period);
  if (on() && is_current(period)) trained_.insert(peer);
  return begins;
}

bool Turns::published(std::uint64_t period) {
  const bool begins = advance(period);
  has_trained_ = has_trained_ || is_current(period);
  return begins;
}

// A peer that lags behind its group may still end the turn; one of the next group begins when the last period is over.
std::optional<std::uint64_t> Turns::next(std::uint64_t own) const {
  const std::uint64_t usual = std::max(own + 1, newest_), after = std::max(own, newest_) + 1;
  if (!on() || trains_in(turn_of(usual))) return usual;
  if (trains_in(turn_of(after))) return after;
  return std::nullopt;
}

bool Turns::drops_residual(std::uint64_t own, std::uint64_t period) const {
  return on() && updates_ >= flush_from && own > 0 && turn_of(period) > turn_of(own) + 1;
}

bool Turns::end(std::uint64_t own) const {
  const std::optional<std::uint64_t> period = next(own);
  if (!on() || !period || updates_ < flush_from || trains_in(turn_of(*period) + 1)) return false;
  return turn_of(*period + 1) != turn_of(*period);
}

Duration Turns::patience() const {
  return std::max<Duration>(patience_min, static_cast<std::int64_t>(10 * expected_) * gap_);
}

TimePoint Turns::patience_ends(std::uint64_t own) const {
  if (!quiet_since_) return never;
  const std::uint64_t turns = turns_until_own(turn_of(std::max(own, newest_) + 1));
  return *quiet_since_ + static_cast<std::int64_t>(turns) * patience();
}

void Turns::take_over(std::uint64_t own, TimePoint now) {
  if (next(own)) return;
  if (!quiet_since_) quiet_since_ = now;
  if (now < patience_ends(own)) return;
  const std::uint64_t turn = turn_of(std::max(own, newest_) + 1);
  advance((turn + turns_until_own(turn)) * updates_);
  quiet_since_ = now;
}

}  // namespace rumor
