// OriginPace: whether an origin may publish now, or is ahead of the network and should keep its change in the
// residual (PROTOCOL.md 6.1.13).
//
// Two signs that it is ahead. At once: no link can take more (all are backlogged). Slowly: neighbours say in
// their vectors what of our stream they have; how old the first update is that one lacks is its *lag*. When
// the median over neighbours is too long, the interval between updates grows, and shrinks again later
// (additive-increase/multiplicative-decrease turned round: times are what is changed here).
//
// Thread: one owner, as Protocol. Memory: a few kilobytes.
#pragma once

#include <deque>
#include <map>

#include "gossip/events.h"
#include "gossip/seq_ranges.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

class OriginPace {
 public:
  static constexpr Duration late = 10s, early = 2s;          // lags
  static constexpr Duration slower_every = 5s, faster_every = 10s;  // between two changes
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

  bool may_publish(TimePoint now) const { return now - last_ >= interval_; }
  Duration interval() const { return interval_; }

 private:
  struct Own {
    std::uint64_t seq;
    TimePoint at;
  };

  Duration lag(const SeqRanges& held, TimePoint now) const;
  void adjust(TimePoint now);

  std::deque<Own> own_;  // the newest, ascending
  TimePoint last_ = long_ago, changed_at_ = long_ago;
  Duration interval_{0};
  std::map<LinkId, Duration> lags_;  // of those that were up to date once
};

}  // namespace rumor::gossip
