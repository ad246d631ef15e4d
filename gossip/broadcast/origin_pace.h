// OriginPace: decides whether an origin may publish now, or is ahead of the network and should keep its change in the
// residual (PROTOCOL.md 6.1.13).
//
// Three signs show that it is ahead:
//   at once          no link can take more: all are backlogged
//   within seconds   DATA waits at the uplink (gossip/broadcast/queue_probe.h) and goes on waiting: a standing queue,
//                    not a burst (Nichols, Jacobson, Controlling Queue Delay, ACM Queue 2012)
//   slowly           a neighbour's vector lacks updates of our stream; its *lag* is the age of the first of them
// Each of the last two makes the interval between updates grow, and later shrink again.
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
  static constexpr Duration late = 10s, early = 2s;                 // a lag above, and below
  static constexpr Duration slower_every = 5s, faster_every = 10s;  // between two changes
  static constexpr Duration wait_long = 200ms, wait_short = 100ms;  // of DATA at the uplink
  static constexpr Duration wait_seen_for = 500ms, waits_forgotten_after = 2s;
  static constexpr int others_gaps_max = 4;  // waiting DATA makes an interval at most this many gaps of other origins
  static constexpr Duration interval_max = 60s, interval_least = 1ms;
  static constexpr std::size_t kept_max = 1024;  // times of own updates

  // An own update. Requires: seq ascends.
  void published(std::uint64_t seq, TimePoint now);
  // A neighbour's vector names these updates of our stream. A neighbour that never was up to date does not count: it is
  // still joining.
  void shown(LinkId link, const SeqRanges& held, TimePoint now);
  // A neighbour's digest is equal to ours.
  void equal(LinkId link, TimePoint now);
  void link_lost(LinkId link) { lags_.erase(link); }
  // DATA waits this long at the uplink just now; others_gap is the mean gap between two updates of another origin
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
  // The mean of the last eight gaps between own updates; interval_least before the second update.
  Duration own_gap() const;
  bool queue_stands(TimePoint now) const;
  void adjust(TimePoint now);
  static Duration shorter(Duration interval);

  std::deque<Own> own_;        // the newest, ascending
  TimePoint slot_ = long_ago;  // of the last own update; one slot each interval() on average, however long steps take
  TimePoint changed_at_ = long_ago;
  Duration by_lag_{0}, by_wait_{0};
  TimePoint waits_known_at_ = long_ago, short_at_ = long_ago;  // of the last wait; of the last that was not long
  TimePoint wait_judged_at_ = long_ago;
  Duration wait_then_{0};
  std::map<LinkId, Duration> lags_;  // of neighbours that were up to date once
};

}  // namespace rumor::gossip
