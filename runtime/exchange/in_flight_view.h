// InFlightView: what a peer supposes the others are doing while their answers are still on the way.
//
// A peer trains on the shared weights plus, for each live peer, `weight` of each own update which that peer's
// updates of the same or a later period have not yet answered. Without it, peers that never wait train on
// weights that are a step old, which costs more than a point of accuracy; with it they look ahead by
// supposing that the others move as they do. A period counts rounds: an update's is one more than its
// origin's last, or the largest its origin had seen when the step began, whichever is greater. So peers of
// equal speed share their numbers, and a slow one keeps up with the fast. A peer that has already been heard
// in the period of a new own update gets no share of it.
//
// The share that stands in for a peer is taken off when that peer's answer ARRIVES, never by the clock: a
// share removed too early or too late leaves a lasting bias. That is how the view adapts to a delay: it is as far ahead
// as answers are late.
//
// Why one half: of what N equal peers have in flight, D steps of it, a view has the share s = (1 + weight (N - 1)) / N.
// On a quadratic, with a rate of h over its curvature, what peers have in common then goes by
// v(t) = x(t) - (1 - s) (u(t-1) + ... + u(t-D)), u = -h v, and what they differ in by
// d(t) = -s h (d(t-1) + ... + d(t-D)). Without delay either is stable for h < 2. The first stays so for every D when
// s >= 1/2: then |z - 1 + s h| >= (1 - s) h on and outside of the unit circle. The second is stable for s h < 1, so for
// all such h when s <= 1/2. One half is thus the one share that bears every delay and every rate that can be borne
// without; with many peers it is the weight as well. in_flight_view_test.cc tries it.
//
// The overlay is integers on the weight grid: taking off what was added restores the exact bits. It is local;
// the shared weights never see it. It is not kept as such: it differs from zero only where own updates are in flight,
// so these are kept, and summed up when the view is to follow them, in a walk over their entries.
//
// Thread: one owner. Memory: at most limits::in_flight_max own updates, shared with who else has them.
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

  // An own update has been applied to the shared weights: one share goes on top for each live peer that has
  // not been heard in this period or later. Beyond limits::in_flight_max updates the oldest counts as
  // answered.
  void sent(compress::SharedUpdate update, std::uint64_t period, std::span<const NodeId> live);

  // An update of `peer` made in `period` has arrived: its shares of own updates up to that period come off.
  void answered(const NodeId& peer, std::uint64_t period);

  // `peer` is no longer live: nothing more is expected of it.
  void gone(const NodeId& peer);

  // Entries at which the overlay has changed, or was lifted, since the last refresh(); counted each time that it did.
  std::uint64_t stale_entries() const { return stale_entries_; }

  // Makes a view that shows the weights show weights plus overlay, wherever there is one. Where there has been one
  // at the last call it may still show that. Work: the entries in flight, and those that came off since.
  void refresh(std::span<const std::int32_t> weights, const compress::FloatView& view, Parallel& parallel);

  // Makes a view that shows the weights but where there is, or was, an overlay show them there as well. The next
  // refresh() brings the overlay back. Work: as refresh().
  void lift(std::span<const std::int32_t> weights, const compress::FloatView& view, Parallel& parallel);

  // One own update in flight, and what of it lies on top of the weights: its shares, once for each of the peers.
  struct Expected {
    const compress::SharedUpdate& update;
    std::span<const compress::StepRun> shares;  // `step` is that of one peer
    std::size_t peers;
  };
  // For a view that is kept elsewhere and knows how to show this, in place of refresh(): all that lies on top from now
  // on. Valid until the next call of anything. And in place of lift(): none of it does, until then.
  std::vector<Expected> expected();
  void lifted() { stale_entries_ += entries(); }

  std::size_t in_flight() const { return own_.size(); }
  std::size_t memory_bytes() const;

 private:
  struct Own {
    std::uint64_t period;
    std::vector<compress::StepRun> shares;  // as in Expected
    compress::SharedUpdate update;
    std::vector<NodeId> waiting_for;
  };
  struct Walk;
  std::uint64_t entries() const;
  void take_off(const NodeId& peer, std::uint64_t period);
  void leave(Own& own) { left_.push_back(std::move(own.update)); }

  ParamLayout layout_;
  double weight_;
  std::uint64_t stale_entries_ = 0;
  std::deque<Own> own_;                            // ascending period
  std::vector<compress::SharedUpdate> left_;       // what came off since the last refresh()
  std::vector<std::vector<std::uint32_t>> tiles_;  // of each walk: the overlay where it is, zeros in between
  std::map<NodeId, std::uint64_t> heard_;  // largest period of each peer's updates
};

}  // namespace rumor
