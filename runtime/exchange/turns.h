// Turns: which peers train now, where the run file lets only some of them train at once (exchange.trainers).
//
// The peers are divided into groups of so many by their shards. The groups train one after another, each for a turn of
// exchange.turn_updates periods; the others receive updates and pass them on. This is cyclic client participation (Cho,
// Sharma, Joshi, Xu, Kale, Zhang, "On the convergence of federated averaging with cyclic client participation", ICML
// 2023). Fewer peers at once take larger mini-batches of the same samples and send fewer, larger updates.
//
// The clock is the period of an update (in_flight_view.h), which every update carries. Periods of one turn are those
// with the same quotient by turn_updates, and the turn's remainder by the number of groups says whose turn it is. So
// all peers agree without a message.
//
// The last update of a turn of eight or more is for what a peer has learned and not sent yet: it has no mini-batch, and
// density_max (runtime/run/run_config.h). What is left in the residual then is dropped when the peer trains again.
// Others have learned much of it since, and at a low density it did harm (METHODS.md, "Peers that train in turn").
// Shorter turns do neither.
//
// Peers may be missing. Where half as many as may have trained in a turn, or fewer, one more of the following groups
// trains along with each, until there are enough; and one less again where there were too many. Where no update comes
// at all, the next group begins after the patience, the one after it after twice that, and so on: ten seconds, or ten
// times as long as a peer usually takes for an update. The period with which it begins tells all others.
//
// A peer that sets its periods falsely can give turns and take them. It changes nothing else: no rule here says what an
// update does to the weights.
//
// Thread: one owner. Memory: an id for each peer of a turn.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "runtime/base/time.h"
#include "runtime/base/types.h"
#include "runtime/run/method_rules.h"

namespace rumor {

class Turns {
 public:
  // This peer has one shard of so many, counted from 0. Requires: shard < shards.
  struct Place {
    std::uint32_t shard = 0, shards = 1;
  };
  Turns(const TurnRules& rules, Place place);

  // False: all peers train all the time.
  bool on() const { return groups_ > 1; }
  // Peers that train at once, this one included, by what the last turn has shown.
  std::size_t expected() const { return expected_; }
  // Whether an own update of the newest turn is published.
  bool has_trained() const { return has_trained_; }
  // Whether those of the last turn train no more: only the peers of one group train at once.
  bool is_apart() const { return along_ == 0; }

  // An update of another peer, made in `period`, is in the replica. True: a new turn has begun with it.
  bool heard(const NodeId& peer, std::uint64_t period, TimePoint now);
  // The same of an own update.
  bool published(std::uint64_t period);
  // The replica has updates up to `period`, such as those of a snapshot. True: so a new turn has begun.
  bool advance(std::uint64_t period);
  // Whether that period is of the newest turn.
  bool is_current(std::uint64_t period) const { return turn_of(period) == turn_of(newest_); }

  // The period of this peer's next step, after one of period `own`. Absent: it is not its turn.
  std::optional<std::uint64_t> next(std::uint64_t own) const;
  // Whether a step of `period`, after one of period `own`, begins without the residual: others had their turn between.
  bool drops_residual(std::uint64_t own, std::uint64_t period) const;
  // Whether that is the last of this peer's turn, with which it sends what it has not sent yet.
  bool end(std::uint64_t own) const;
  // Where nobody has trained for so long that this peer may: makes it its turn.
  void take_over(std::uint64_t own, TimePoint now);
  // From when on take_over() does so, if no update comes; `never` before the first call of it.
  TimePoint patience_ends(std::uint64_t own) const;

 private:
  std::uint64_t turn_of(std::uint64_t period) const { return period / updates_; }
  std::uint64_t turns_until_own(std::uint64_t turn) const { return (group_ + groups_ - turn % groups_) % groups_; }
  bool trains_in(std::uint64_t turn) const { return turns_until_own(turn) <= along_; }
  void judge_turn();
  Duration patience() const;

  std::uint64_t trainers_, updates_, groups_, group_;
  std::uint64_t newest_ = 0;              // the largest period so far
  std::set<NodeId> trained_;              // other peers, in the newest turn
  bool has_trained_ = false;
  std::size_t expected_;
  std::uint64_t along_ = 0;               // following groups that train along with the one whose turn it is
  std::optional<TimePoint> quiet_since_;  // the last update of another, or when this peer began to wait
  Duration gap_{0};                       // moving average, between two updates of others
};

}  // namespace rumor
