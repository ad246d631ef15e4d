// LockStep: rounds in which peers compute, wait for the slowest and combine their results; and the cost of that.
//
// A round samples a share of the peers that are present (all of them, unless the run asks for fewer). A peer that
// missed the round before lacks the shared state. It fetches that state over the uplink of a peer that has it; peers
// that have it take turns. Each peer computes its steps; when the slowest is done, a collective combines the results.
// A peer that goes away during the steps has no part in the round and loses its state beyond the shared one. No peer
// waits for it. Nothing disturbs the collective itself. The peers of the newest round hold the shared state on their
// disks; while all of them are away, the others wait until one is back.
//
// The result of a round depends on its peers, not on time. So unless a peer goes away, a run learns the same on every
// network and at every machine speed. Then a run need not train again (ClusterOptions::learned): it takes the losses of
// the earlier run's curve.
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
    double participation = 1;   // share of the present peers that is sampled: at least one peer
    std::size_t state_bytes = 0;  // of the state that all peers share
  };
  LockStep(const MethodSetting& in, const Plan& plan);

  // A part of a round, for all its peers: `learn` changes the model; `exchange` accounts for the bytes sent, through
  // all_reduce() or all_gather().
  using Part = std::function<void(const Round&)>;
  // Runs rounds until the run's samples are seen. `model`: [params], evaluated. Errors: Errc::not_finite; Errc::usage
  // when again and again no peer stays for a whole round, or `learned` is of another run.
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
