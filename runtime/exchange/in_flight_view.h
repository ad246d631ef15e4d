// InFlightView: an estimate of the updates of other peers that are still on the way, added to a trainer's view.
//
// The estimate supposes that the others move as this peer does. For each live peer it adds `weight` of each own update
// that the peer has not answered yet; an update of the same or a later period is an answer. Without it, peers that
// never wait train on weights that are a step old, which costs more than a point of accuracy.
//
// A period counts rounds. That of an update is one more than its origin's last, or the largest that its origin had seen
// when the step began, whichever is greater. Peers of equal speed therefore have equal periods, and a slow peer keeps
// up with the fast ones. A peer that was already heard in the period of a new own update gets no share of that update.
//
// The share for a peer comes off when that peer's answer ARRIVES, never by the clock: a share removed too early or too
// late leaves a lasting bias. The view therefore adapts to the delay: it is as far ahead as answers are late.
//
// Why one half. N equal peers have D steps in flight, and a view has the share s = (1 + weight (N - 1)) / N of them.
// Take a quadratic and a learning rate of h over its curvature. The mean of the peers then follows
// v(t) = x(t) - (1 - s) (u(t-1) + ... + u(t-D)), u = -h v, and their differences follow
// d(t) = -s h (d(t-1) + ... + d(t-D)). Without delay both are stable for h < 2. The mean stays stable for every D when
// s >= 1/2: then |z - 1 + s h| >= (1 - s) h on and outside of the unit circle. The differences are stable for s h < 1,
// which is every h < 2 when s <= 1/2. One half is therefore the one share that is stable for every delay and for every
// rate that is stable without delay. With many peers the weight equals the share. in_flight_view_test.cc tries it.
//
// The overlay is made of integers on the weight grid, so taking a share off restores the exact bits. It is local: the
// shared weights never contain it. It is not stored: it differs from zero only at the entries of own updates in flight,
// so these are stored, and summed in a walk over their entries when the view follows them.
//
// Thread: one owner. Memory: at most limits::in_flight_max own updates, shared with other holders.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "compress/payload/apply.h"
#include "compress/payload/update.h"
#include "runtime/base/types.h"

namespace rumor {

class InFlightView {
 public:
  // weight in [0, 1]; 0 switches the view off.
  InFlightView(ParamLayout layout, double weight);
  // The same, of own updates from now on.
  void set_weight(double weight);

  // An own update has been applied to the shared weights: adds one share for each live peer that has not been heard in
  // this period or later. Beyond limits::in_flight_max updates the oldest counts as answered.
  void sent(compress::SharedUpdate update, std::uint64_t period, std::span<const NodeId> live);

  // An update of `peer` made in `period` has arrived: its shares of own updates up to that period come off.
  void answered(const NodeId& peer, std::uint64_t period);

  // `peer` is no longer live: nothing more is expected of it.
  void gone(const NodeId& peer);

  // Entries at which the overlay has changed, or was lifted, since the last refresh(); each change counts.
  std::uint64_t stale_entries() const { return stale_entries_; }

  // Adds the overlay to a view that shows the weights. Where there was an overlay at the last call, the view may still
  // show it. Work: the entries in flight, and those that came off since.
  void refresh(std::span<const std::int32_t> weights, const compress::FloatView& view, Parallel& parallel);

  // Takes the overlay off the view, which then shows the weights everywhere. The next refresh() brings it back. Work:
  // as refresh().
  void lift(std::span<const std::int32_t> weights, const compress::FloatView& view, Parallel& parallel);

  // One own update in flight. The overlay has its shares once for each of the peers.
  struct Expected {
    const compress::SharedUpdate& update;
    std::span<const compress::StepRun> shares;  // `step` is that of one peer
    std::size_t peers;
  };
  // In place of refresh(), for a view that is stored elsewhere: the whole overlay from now on. Valid until the next
  // call of any member.
  std::vector<Expected> expected();
  // In place of lift(), for such a view: it shows no overlay until the next call of expected().
  void lifted() { stale_entries_ += entries(); }

  std::size_t in_flight() const { return own_.size(); }
  // The own update of a period, how many peers have not answered it, and its share for each.
  struct Waiting {
    std::uint64_t period = 0, peers = 0;
    double weight = 0.5;
    bool operator==(const Waiting&) const = default;
  };
  // All in flight, in ascending order: with the updates themselves, what the overlay is made of.
  std::vector<Waiting> waiting() const;
  std::size_t memory_bytes() const;

 private:
  struct Own {
    std::uint64_t period;
    double weight;
    std::vector<compress::StepRun> shares;  // as in Expected
    compress::SharedUpdate update;
    std::vector<NodeId> waiting_for;
  };
  struct Walk;
  std::uint64_t entries() const;
  void take_off(const NodeId& peer, std::uint64_t period);
  void leave(Own& own) { left_.push_back(std::move(own.update)); }

  ParamLayout layout_;
  double weight_ = 0;
  std::uint64_t stale_entries_ = 0;
  std::deque<Own> own_;                            // ascending period
  std::vector<compress::SharedUpdate> left_;       // came off since the last refresh()
  std::vector<std::vector<std::uint32_t>> tiles_;  // of each walk: the overlay where it is, zeros in between
  std::map<NodeId, std::uint64_t> heard_;  // largest period of each peer's updates
};

}  // namespace rumor
