// ViewWeight: the weight of the in-flight view (in_flight_view.h) where the run file leaves it to the peer
// (exchange.in_flight_weight = "auto").
//
// The view expects others to move as this peer does. Whether peers do so is measured: the *agreement* is the share of
// equal signs, less that of unlike ones, at the positions that two updates in a row, of different peers, share. Own
// updates are among them. All peers of a run see about the same updates, so they come to about the same number, and
// switch together. A peer that compares with its own updates alone may decide much earlier or later than others do.
//
// The agreement is above 0 while peers learn the same, and falls below -0.02 where the data are so unlike that each
// undoes what the others do (two classes a peer: figures in METHODS.md). Then the weight goes to 0. It comes back to
// 1/2 only when the agreement is far above 0: the lower learning rate makes updates agree a little more, whatever the
// data.
//
// The weight also kept late updates stable. Without it, gradient steps of a quadratic that come D late converge only
// for rates below 2 sin(pi / (4 D + 2)) over the curvature (Levin, May, "A note on difference-delay equations",
// Theoretical Population Biology 1976), where rates below 2 do without delay. So a peer at weight 0 divides its
// learning rate by 2 D + 1, a third less than that limit. In between the view answers a part of the delay, and the
// factor counts for the other part alone. D is one step at least, since an entry that links do not delay still waits
// in the residual: with two classes a peer and no other delay, training is unsteady at the full rate (METHODS.md).
//
// The weight changes by 1/64 with an own update, at most. It is not stored, as the staleness is not: a restarted peer
// begins at 1/2 and measures anew. The same updates in the same order give the same weight on every machine.
//
// Thread: one owner. Memory: 5 bytes for each entry kept. Work: of an update at most `compared_max` entries are kept,
// evenly spread over its first `looked_at_max`, and looked up in the next update.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compress/payload/update.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/types.h"

namespace rumor {

class ViewWeight {
 public:
  static constexpr std::size_t looked_at_max = 65536, compared_max = 4096;  // entries of an update
  static constexpr double memory = 16384;                              // positions that count, the newest most
  static constexpr double first_heard = 2048;  // positions before the weight first changes
  static constexpr double least_delay = 1;  // step
  static constexpr double unlike_below = -0.02, alike_above = 0.2;

  // fixed: the weight, in [0, 1], which then stays; none: it follows the agreement, from 1/2 on.
  explicit ViewWeight(std::optional<double> fixed) : fixed_(fixed) {}

  // An update of `origin`, this peer or another, enters the replica.
  void seen(const NodeId& origin, const compress::SparseUpdate& update);
  // An own update has been published: the weight may change.
  void published();

  double weight() const { return fixed_ ? *fixed_ : static_cast<double>(level_) / (2 * level_full); }
  // Multiplies the learning rate, in (0, 1]; staleness: the mean over the live peers. 1 where the weight is fixed.
  double rate_factor(double staleness) const;
  // From -1 to 1; none where the weight is fixed, or nothing was compared yet.
  std::optional<double> agreement() const;
  // Whether the weight has come down to 0 since peers do not move alike.
  bool is_unlike() const { return !fixed_ && level_ == 0; }
  std::size_t memory_bytes() const { return capacity_bytes(index_, negative_); }

 private:
  static constexpr std::uint32_t level_full = 32;  // a weight of 1/2
  void compare(const compress::SparseUpdate& update);

  std::optional<double> fixed_;
  std::uint32_t level_ = level_full;
  bool goes_up_ = true;
  NodeId origin_;  // of the newest update
  std::vector<std::uint32_t> index_;
  std::vector<std::uint8_t> negative_;
  double equal_ = 0;   // equal signs less unlike ones
  double common_ = 0;  // positions in common; both fade as newer ones come
};

}  // namespace rumor
