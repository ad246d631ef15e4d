#include "gossip/broadcast/origin_pace.h"

#include <algorithm>
#include <vector>

#include "runtime/base/check.h"

namespace rumor::gossip {

void OriginPace::published(std::uint64_t seq, std::size_t bytes, std::size_t neighbours, TimePoint now) {
  RUMOR_CHECK(own_.empty() || seq > own_.back().seq);
  neighbours_ = neighbours;
  last_bytes_ = bytes;
  if (wait_judged_at_ == long_ago && bytes <= thin_payload_max) factor_ = whole;
  own_.push_back({seq, now});
  if (own_.size() > kept_max) own_.pop_front();
  slot_ = std::max(slot_ + interval(), now - interval());
}

// With fewer steps, none begins while DATA waits: what waits shows it when it has gone.
TimePoint OriginPace::publishes_from() const {
  const TimePoint slot = slot_ + interval();
  if (gives_way_ != GiveWay::fewer_steps || wait_now_ < wait_short) return slot;
  return std::max(slot, waits_known_at_ + waits_forgotten_after);
}

// The age of the first own update that is not in `held`.
Duration OriginPace::lag(const SeqRanges& held, TimePoint now) const {
  for (const Own& own : own_)
    if (!ranges_contain(held, own.seq)) return now - own.at;
  return Duration{0};
}

void OriginPace::shown(LinkId link, const SeqRanges& held, TimePoint now) {
  const Duration behind = lag(held, now);
  const auto known = lags_.find(link);
  if (known != lags_.end()) {
    known->second = behind;
  } else if (behind < late) {
    lags_.emplace(link, behind);
  } else {
    return;
  }
  adjust(now);
}

void OriginPace::equal(LinkId link, TimePoint now) {
  lags_[link] = Duration{0};
  adjust(now);
}

Duration OriginPace::own_gap() const {
  const std::size_t few = std::min<std::size_t>(own_.size(), 9);
  if (few < 2) return interval_least;
  return (own_.back().at - own_[own_.size() - few].at) / static_cast<int>(few - 1);
}

// Long enough for two own updates to have met in a queue and left it.
bool OriginPace::queue_stands(TimePoint now) const {
  return now - short_at_ >= std::max(wait_seen_for, 2 * own_gap());
}

void OriginPace::waits(Duration wait, Duration others_gap, TimePoint now) {
  if (now - waits_known_at_ >= waits_forgotten_after)
    short_at_ = now;  // the time between is unknown
  waits_known_at_ = now;
  wait_now_ = wait;
  if (wait < wait_long) short_at_ = now;
  const Duration since = now - wait_judged_at_;
  // A change shows only after the DATA that waited then has left.
  if (since < wait_seen_for || (wait >= wait_short && since < wait_seen_for + wait_then_)) return;
  // How much more comes in than goes out, and what is to go out besides; in units of 1 / whole.
  const std::int64_t pressure = (wait - wait_then_) * whole / since + wait * whole / drained_within;
  if (wait_judged_at_ == long_ago && neighbours_ < many_neighbours) factor_ = whole;
  wait_judged_at_ = now;
  wait_then_ = wait;
  if (queue_stands(now) && pressure > 0) {
    send_less(std::clamp(pressure, whole / 8, whole), others_gap);
  } else if (wait < wait_short) {
    send_more();
  }
}

void OriginPace::send_less(std::int64_t pressure, Duration others_gap) {
  if (gives_way_ == GiveWay::thinner_updates && factor_ > thinnest && last_bytes_ > thin_payload_max) {
    factor_ = std::max(factor_ * whole / (whole + pressure), thinnest);
    return;
  }
  const Duration base = std::max(interval(), own_gap());
  const Duration longest = std::min(others_gap, interval_max / others_gaps_max) * others_gaps_max;
  by_wait_ = std::max(by_wait_, std::min(base + base * pressure / whole + interval_least, longest));
}

void OriginPace::send_more() {
  const bool sparser = factor_ < whole, slower = by_wait_ > Duration{0};
  if (slower && !(sparser && gives_way_ == GiveWay::fewer_steps))
    by_wait_ = shorter(by_wait_);
  else
    factor_ = std::min(factor_ + factor_ / 4, whole);
}

Duration OriginPace::shorter(Duration interval) {
  interval = interval * 4 / 5;
  return interval < interval_least ? Duration{0} : interval;
}

void OriginPace::adjust(TimePoint now) {
  std::vector<Duration> lags;
  for (const auto& [link, behind] : lags_) lags.push_back(behind);
  const auto middle = lags.begin() + static_cast<std::ptrdiff_t>(lags.size() / 2);
  std::nth_element(lags.begin(), middle, lags.end());
  const Duration since = now - changed_at_;
  if (*middle > late && since >= slower_every) {
    by_lag_ = std::min(std::max(interval(), own_gap()) * 3 / 2 + interval_least, Duration{interval_max});
    changed_at_ = now;
  } else if (*middle < early && since >= faster_every && by_lag_ > Duration{0}) {
    by_lag_ = shorter(by_lag_);
    changed_at_ = now;
  }
}

}  // namespace rumor::gossip
