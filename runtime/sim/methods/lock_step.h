// LockStep: rounds in which peers compute, wait for the slowest, and put together what they have; and what that costs.
//
// A round begins with who is here. Of these a share is drawn by chance (all of them, unless one asks for fewer).
// Whoever was not in the round before lacks the state that all share and fetches it from a peer that has it, whose
// uplink pays: those who have it take turns. Each computes its steps; when the slowest is done, they put together what
// they have as collectives do. A peer that goes away meanwhile has no part in the round, what it had beside the shared
// state is lost, and nobody waits for it; putting together is disturbed by nobody. The shared state is on the disks of
// those who were in the newest round; while all of them are away the others wait for one.
//
// What is learned in a round depends on who is in it, and not on how long anything takes. So unless somebody goes away,
// a run learns the same on every network and on machines of every speed, and what one has found need not be computed
// again (ClusterOptions::learned): then nothing is trained and its curve's losses are taken.
//
// Thread: one owner; equal seeds give equal rounds. Memory: a few words a peer.
#pragma once

#include <functional>
#include <vector>

#include "runtime/sim/methods/method_record.h"
#include "runtime/sim/methods/method_setting.h"
#include "runtime/sim/methods/transfers.h"

namespace rumor::sim {

struct Round {
  std::vector<std::size_t> peers;  // here from its beginning to its end, ascending; at least one
  std::vector<std::size_t> lost;   // were away at some time since the round before
  std::uint32_t steps = 1;         // that each of them takes
  double began = 0, advance = 0;   // progress of the run in [0, 1] at its beginning, and by one step of all of them

  double progress(std::uint32_t step) const { return began + advance * step; }
};

class LockStep {
 public:
  struct Plan {
    std::uint32_t steps = 1;    // of a peer in a round; the last round has no more than are left to do
    double participation = 1;   // share of those here that is drawn: at least one peer
    std::size_t state_bytes = 0;  // of what all share
  };
  LockStep(const MethodSetting& in, const Plan& plan);

  // What all peers do in a round: `learn` changes the model, `exchange` says through all_reduce() or all_gather() what
  // is sent for it.
  using Part = std::function<void(const Round&)>;
  // Rounds until the run's samples are seen. `model`: [params], evaluated. Errors: Errc::not_finite; Errc::usage when
  // again and again nobody stays for a whole round, or `learned` is of another run.
  Result<SimResult> run(const std::vector<float>& model, const Part& learn, const Part& exchange);

  // Every peer has the sum of `bytes` of each: a ring sends 2 (N-1) / N of them in 2 (N-1) messages one after another,
  // over the slower of up- and downlink (Patarasuk, Yuan, JPDC 2009).
  void all_reduce(const std::vector<std::size_t>& peers, double bytes);
  // Every peer has the `bytes` of each other: on a ring each sends N-1 times as many, in N-1 messages.
  void all_gather(const std::vector<std::size_t>& peers, double bytes);

 private:
  Result<Round> compute();
  void attempt(Round& round);
  std::vector<std::size_t> present();
  std::vector<std::size_t> draw(std::vector<std::size_t> here);
  std::vector<TimePoint> fetch(const std::vector<std::size_t>& here, const std::vector<std::size_t>& peers);
  void pass_on(const std::vector<std::size_t>& peers, double bytes, double messages);
  std::size_t share_of(std::size_t peers) const;

  const RunConfig& config_;
  const ClusterOptions& options_;
  Learners& learners_;
  const Absences& absences_;
  Plan plan_;
  MethodRecord record_;
  Transfers transfers_;
  Prng draws_;
  std::vector<bool> has_newest_;  // by peer
  std::size_t turn_ = 0;          // of those who have it
  std::uint64_t samples_ = 0;
  TimePoint now_{}, seen_{};  // seen_: up to when absences were noticed
};

}  // namespace rumor::sim
