// RoundLength: how many mini-batches a peer takes by itself for an update, where the run file leaves it to the peer
// (exchange.local_steps = "auto").
//
// The round follows the delay: as many mini-batches as pass on the way of an update to here. The mean staleness of the
// others' updates (runtime/exchange/staleness.h) counts in own rounds: the one in which an update is made, and then
// that way. So
//
//   wanted = (staleness - 1) x length
//
// and a round of that length hears the answer to its last one in time: the staleness is then about two. Shorter rounds
// train on weights that miss many updates; longer ones learn no better, with sixteen peers much worse, and hear the
// others less often. Rounds of four learn better than shorter ones with four peers even without a delay, and send fewer
// bytes (figures in METHODS.md).
//
// The length changes at most once in `patience` own updates, at most to twice or half, and only when it is more than
// half as much again as wanted, or less than two thirds: each change of it is a change of the density of the updates.
// Peers of one run may differ.
//
// Thread: one owner.
#pragma once

#include <cstdint>

namespace rumor {

class RoundLength {
 public:
  static constexpr std::uint32_t patience = 16;

  // Begins at `shortest`; equal bounds fix the length. Requires: 1 <= shortest <= longest.
  RoundLength(std::uint32_t shortest, std::uint32_t longest);
  // The bounds for a density of a mini-batch (0: there is a budget in bytes): 4 to 16, or less where the update of a
  // longer round would be denser than density_max (runtime/run/run_config.h), which would cost it entries.
  static RoundLength following(double density);

  // Mini-batches of the next round.
  std::uint32_t length() const { return length_; }
  // An own update has been published; staleness: the mean over the live peers.
  void published(double staleness);

 private:
  std::uint32_t shortest_, longest_, length_;
  std::uint32_t since_change_ = 0;  // own updates
};

}  // namespace rumor
