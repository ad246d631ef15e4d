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
// share removed too early or too late leaves a lasting bias.
//
// The overlay is integers on the weight grid: taking off what was added restores the exact bits. It is local;
// the shared weights never see it.
//
// Thread: one owner. Memory: one int32 per parameter, and the entries of at most limits::in_flight_max own
// updates.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "compress/update.h"
#include "runtime/base/types.h"

namespace rumor {

class InFlightView {
 public:
  // weight in [0, 1]; 0 switches the view off.
  InFlightView(ParamLayout layout, double weight);

  // An own update has been applied to the shared weights: one share goes on top for each live peer that has
  // not been heard in this period or later. Beyond limits::in_flight_max updates the oldest counts as
  // answered. Appends touched positions to `touched`.
  void sent(const compress::SparseUpdate& update, std::uint64_t period, std::span<const NodeId> live,
            std::vector<std::uint32_t>& touched);

  // An update of `peer` made in `period` has arrived: its shares of own updates up to that period come off.
  void answered(const NodeId& peer, std::uint64_t period, std::vector<std::uint32_t>& touched);

  // `peer` is no longer live: nothing more is expected of it.
  void gone(const NodeId& peer, std::vector<std::uint32_t>& touched);

  // What to add to the shared weights, in grid units.
  std::span<const std::int32_t> overlay() const { return overlay_; }
  std::size_t in_flight() const { return own_.size(); }

 private:
  struct Own {
    std::uint64_t period;
    std::vector<compress::StepRun> shares;  // `step` is the grid units an entry moves for one peer
    std::vector<std::uint32_t> index;
    std::vector<std::uint8_t> negative;
    std::vector<NodeId> waiting_for;
  };
  void take_off(const NodeId& peer, std::uint64_t period, std::vector<std::uint32_t>& touched);
  void move(const Own& own, std::int32_t shares, std::vector<std::uint32_t>& touched);

  ParamLayout layout_;
  double weight_;
  std::vector<std::int32_t> overlay_;
  std::deque<Own> own_;                    // ascending period
  std::map<NodeId, std::uint64_t> heard_;  // largest period of each peer's updates
};

}  // namespace rumor
