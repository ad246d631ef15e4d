// OriginPace: whether an origin may publish now, or is ahead of the network and should keep its change in the
// residual (PROTOCOL.md 6.1.13).
//
// Signs that it is ahead. At once: no link can take more (all are backlogged). Within seconds: DATA waits at
// the uplink (gossip/broadcast/queue_probe.h), and goes on waiting: a standing queue, not a burst (Nichols, Jacobson,
// Controlling Queue Delay, ACM Queue 2012). Slowly: neighbours say in their vectors what of our stream they
// have; how old the first update is that one lacks is its *lag*. By either the interval between updates
// grows, and shrinks again later (increase and decrease turned round: times are what is changed here).
//
// Thread: one owner, as Protocol. Memory: a few kilobytes.
#pragma once

#include <algorithm>
#include <deque>
#include <map>

#include "gossip/contract/events.h"
#include "gossip/contract/seq_ranges.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

class OriginPace {
 public:
  static constexpr Duration late = 10s, early = 2s;                 // lags
  static constexpr Duration slower_every = 5s, faster_every = 10s;  // between two changes
  static constexpr Duration wait_long = 200ms, wait_short = 100ms;  // of DATA at the uplink
  static constexpr Duration wait_seen_for = 500ms, waits_forgotten_after = 2s;
  static constexpr int others_gaps_max = 4;  // for what DATA waits, an interval is no longer than so many of others
  static constexpr Duration interval_max = 60s, interval_least = 1ms;
  static constexpr std::size_t kept_max = 1024;  // times of own updates

  // An own update. Requires: seq ascends.
  void published(std::uint64_t seq, TimePoint now);
  // What a neighbour has of our stream, by its vector. Of one that never was up to date nothing follows: it
  // is still joining.
  void shown(LinkId link, const SeqRanges& held, TimePoint now);
  // Its digest is ours.
  void equal(LinkId link, TimePoint now);
  void link_lost(LinkId link) { lags_.erase(link); }
  // What DATA waits at the uplink just now, and the mean gap between two updates of another origin
  // (interval_max: there are none). Call it a few times a second while own updates are made.
  void waits(Duration wait, Duration others_gap, TimePoint now);

  bool may_publish(TimePoint now) const { return now - slot_ >= interval(); }
  Duration interval() const { return std::max(by_lag_, by_wait_); }

 private:
  struct Own {
    std::uint64_t seq;
    TimePoint at;
  };

  Duration lag(const SeqRanges& held, TimePoint now) const;
  // Mean of the last eight between own updates; interval_least before the second.
  Duration own_gap() const;
  bool queue_stands(TimePoint now) const;
  void adjust(TimePoint now);
  static Duration shorter(Duration interval);

  std::deque<Own> own_;        // the newest, ascending
  TimePoint slot_ = long_ago;  // of the last own update: one each interval() in the mean, whatever steps take
  TimePoint changed_at_ = long_ago;
  Duration by_lag_{0}, by_wait_{0};
  TimePoint waits_known_at_ = long_ago, short_at_ = long_ago;  // the last wait; the last that was not long
  TimePoint wait_judged_at_ = long_ago;
  Duration wait_then_{0};
  std::map<LinkId, Duration> lags_;  // of those that were up to date once
};

}  // namespace rumor::gossip
