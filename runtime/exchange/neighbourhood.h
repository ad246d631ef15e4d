// Neighbourhood: the public copies of the neighbours of a peer that has a model of its own. Codistillation compares
// predictions with some of these copies in each step (runtime/training/model_trainer.h). Averaging moves the model
// towards them, in proportion to their distance from the own copy. (Koloskova, Stich, Jaggi, ICML 2019, Algorithm 2:
// CHOCO-SGD; Koloskova, Lin, Stich, Jaggi, ICLR 2020.)
//
// Peer i has a model x_i and a public copy c_i of it, and holds the copies c_j of its neighbours. A step of its own and
//
//   x_i += rate * sum_j w (c_j - c_i)
//
// move the model. Then an update q = compress(x_i - c_i) moves c_i, here and at every peer that holds c_i. The rest
// stays in x_i - c_i, the residual of compress/select/compressor.h. Copies are on the weight grid and move by whole
// numbers, so all holders of a copy have the same bits, and prove it by its digest. Models are only near each other.
//
// In the papers all peers step at once, and the mean of all models does not move. Here each peer averages when it is
// ready, and copies are as old as their links are slow. w is 1 / (1 + the most neighbours that a peer may have), equal
// for all peers. A peer therefore need not know how many neighbours its neighbours have, and the sum of its weights is
// below 1 (Xiao, Boyd, Syst. Control Lett. 2004).
//
// A neighbour counts from its first update on. Until then its copy is the run's initial weights, and a peer that is
// still joining would pull all others back to them.
//
// Thread: one owner, the protocol thread. Memory: 4 bytes a parameter, 4 more for each neighbour and for each of two
// former neighbours, and the entries pending on these (runtime/replica/replica.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"
#include "runtime/run/run_config.h"

namespace rumor {

class Neighbourhood final : public gossip::CopyPort {
 public:
  // `own` is the peer's public copy, and still has the run's initial weights. Refers to it; begin_with() replaces its
  // state.
  Neighbourhood(RunForm form, Replica& own, const NeighbourRules& rules);

  // pull[i] = share * sum_j (c_j - c_i)[i], in weights, over the neighbours that count; [params].
  void pull(double share, std::span<float> pull, Parallel& parallel) const;
  // rate * w. `density`: entries / parameters.
  double share(double density) const;
  // The weights of `count` of the neighbours that count, or of all: `turn` goes around them in a circle. Valid until
  // the next change of a copy.
  std::vector<std::span<const std::int32_t>> teachers(std::size_t count, std::uint64_t turn) const;
  // Samples behind the own model that are in no update yet.
  void set_unpublished(std::uint64_t samples) { unpublished_ = samples; }
  // Samples that this peer has trained itself, in earlier lives too.
  std::uint64_t own_samples() const { return own_.samples() + unpublished_; }

  // Number of neighbours that count.
  std::size_t size() const;
  // Estimate of the mean samples that a peer of the run has trained (PROTOCOL.md 6.14.8).
  double mean_samples() const;
  std::size_t memory_bytes() const;

  // gossip::CopyPort
  std::shared_ptr<const Bytes> own_copy() const override;
  std::size_t copy_bytes_max() const override;
  std::optional<std::uint64_t> held(const NodeId& node, const StreamId& stream) const override;
  void hold_initial(const NodeId& node) override;
  Result<void> take_copy(const NodeId& node, BytesView copy) override;
  Result<void> take_update(const gossip::StoredUpdate& update) override;
  void begin_with(const NodeId& node) override;
  std::optional<gossip::ReplicaDigest> digest_of(const NodeId& node) const override;
  void set_linked(const NodeId& node, bool linked, TimePoint now) override;

  // O(params) for each neighbour.
  void check_invariants() const;

 private:
  struct Neighbour {
    Replica copy;
    bool linked = false, counts = false;
    TimePoint lost_at{};
    std::uint64_t ours_then = 0;  // own samples when it was last heard
  };

  Neighbour& hold(const NodeId& node);
  // Adds its copy to the sums, or takes it out.
  void count(Neighbour& neighbour, bool counts);
  void forget_old(TimePoint now);

  RunForm form_;
  Replica& own_;
  const LargeVector<std::int32_t> initial_;
  NeighbourRules rules_;
  std::map<NodeId, Neighbour> neighbours_;
  LargeVector<std::int32_t> sums_;  // of the copies that count, modulo 2^32
  std::uint64_t unpublished_ = 0;
};

// The rate of averaging for updates of so many entries / parameters: half the root of the density. The share of a
// difference that an update carries falls with the density, and a model that moves faster than copies follow starts to
// swing; in the papers too the rate falls with the compression. The form is ours, from measurements
// (runtime/METHODS.md).
double consensus_rate(double density);

// The number of links that gives a peer so many neighbours.
gossip::LinkCounts links_of(const NeighbourRules& rules);

}  // namespace rumor
