// OriginPace: how much an origin may send: whether it may publish now or should keep its change in the residual, and
// how dense its updates may be (PROTOCOL.md 6.1.13).
//
// Three signs show that it is ahead of the network:
//   at once          no link can take more: all are backlogged
//   within a second  DATA waits at the uplink (gossip/broadcast/queue_probe.h) and goes on waiting: a standing queue,
//                    not a burst (Nichols, Jacobson, Controlling Queue Delay, ACM Queue 2012)
//   slowly           a neighbour's vector lacks updates of our stream; its *lag* is the age of the first of them
// The second makes updates thinner, and the interval between them longer once they are thin enough. The third makes the
// interval longer. All of it is taken back later.
//
// Thread: one owner, as Protocol. Integers only. Memory: a few kilobytes.
#pragma once

#include <algorithm>
#include <deque>
#include <map>

#include "gossip/contract/events.h"
#include "gossip/contract/seq_ranges.h"
#include "gossip/links/options.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

class OriginPace {
 public:
  static constexpr Duration late = 10s, early = 2s;                 // a lag above, and below
  static constexpr Duration slower_every = 5s, faster_every = 10s;  // between two changes
  static constexpr Duration wait_long = 60ms, wait_short = 30ms;  // of DATA at the uplink
  static constexpr Duration wait_seen_for = 500ms, waits_forgotten_after = 2s;
  static constexpr Duration drained_within = 2s;  // a standing queue
  // Density factors, in units of 1 / whole. An origin begins with `cautious`.
  static constexpr std::int64_t whole = 1024, cautious = whole / 2, thinnest = whole / 8;
  static constexpr std::size_t many_neighbours = 4;  // with fewer, the first judgement ends the caution
  static constexpr std::size_t thin_payload_max = 512;  // bytes; the frame around a smaller payload is what costs
  static constexpr int others_gaps_max = 4;  // waiting DATA makes an interval at most this many gaps of other origins
  static constexpr Duration interval_max = 60s, interval_least = 1ms;
  static constexpr std::size_t kept_max = 1024;  // times of own updates

  explicit OriginPace(GiveWay gives_way = GiveWay::rarer_updates)
      : gives_way_(gives_way), factor_(gives_way == GiveWay::rarer_updates ? whole : cautious) {}

  // An own update of so many bytes. Requires: seq ascends.
  void published(std::uint64_t seq, std::size_t bytes, std::size_t neighbours, TimePoint now);
  // A neighbour's vector names these updates of our stream. A neighbour that never was up to date does not count: it is
  // still joining.
  void shown(LinkId link, const SeqRanges& held, TimePoint now);
  // A neighbour's digest is equal to ours.
  void equal(LinkId link, TimePoint now);
  void link_lost(LinkId link) { lags_.erase(link); }
  // DATA waits this long at the uplink just now; others_gap is the mean gap between two updates of another origin
  // (interval_max: there are none). Call it a few times a second while own updates are made.
  void waits(Duration wait, Duration others_gap, TimePoint now);

  bool may_publish(TimePoint now) const { return now >= publishes_from(); }
  TimePoint publishes_from() const;
  Duration interval() const { return std::max(by_lag_, by_wait_); }
  // The share of its planned density that the next update may have, in units of 1 / whole.
  std::int64_t density_factor() const { return factor_; }

 private:
  struct Own {
    std::uint64_t seq;
    TimePoint at;
  };

  Duration lag(const SeqRanges& held, TimePoint now) const;
  // The mean of the last eight gaps between own updates; interval_least before the second update.
  Duration own_gap() const;
  bool queue_stands(TimePoint now) const;
  void send_less(std::int64_t pressure, Duration others_gap);
  void send_more();
  void adjust(TimePoint now);
  static Duration shorter(Duration interval);

  std::deque<Own> own_;        // the newest, ascending
  TimePoint slot_ = long_ago;  // of the last own update; one slot each interval() on average, however long steps take
  TimePoint changed_at_ = long_ago;
  Duration by_lag_{0}, by_wait_{0};
  GiveWay gives_way_;
  std::int64_t factor_;
  std::size_t last_bytes_ = 0, neighbours_ = 0;  // of the last own update; when it was made
  Duration wait_now_{0};
  TimePoint waits_known_at_ = long_ago, short_at_ = long_ago;  // of the last wait; of the last that was not long
  TimePoint wait_judged_at_ = long_ago;
  Duration wait_then_{0};
  std::map<LinkId, Duration> lags_;  // of neighbours that were up to date once
};

}  // namespace rumor::gossip
