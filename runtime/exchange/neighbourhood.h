// Neighbourhood: what a peer with a model of its own knows of its neighbours: their public copies. One that codistils
// asks some of these in each step what they predict (runtime/training/model_trainer.h); one that averages moves its
// model towards them by how far they are from its own copy. (Koloskova, Stich, Jaggi, ICML 2019, Algorithm 2:
// CHOCO-SGD; Koloskova, Lin, Stich, Jaggi, ICLR 2020.)
//
// Peer i has a model x_i and a public copy c_i of it, and holds those of its neighbours j. A step of its own and
//
//   x_i += rate * sum_j w (c_j - c_i)
//
// move the model; then c_i moves by what is told of the difference, q = compress(x_i - c_i), here and wherever c_i
// is held. What q leaves out waits: x_i - c_i is the residual of compress/select/compressor.h. Copies lie on the grid
// and move by whole numbers, so all who hold one hold the same bits, and prove it by its digest; models are only near
// each other.
//
// There all peers step at once, and the mean of all models stays where it is; here each draws when it is ready, and
// copies are as old as their links are slow. w is 1 / (1 + the most neighbours that a peer may have), the same for
// all, so a peer need not know how many its neighbours have, and its weights are below 1 together (Xiao, Boyd,
// Syst. Control Lett. 2004).
//
// A neighbour counts from its first update on: the weights that everybody begins with are nobody's opinion, and one
// that is still joining would draw all others back to them.
//
// Thread: one owner, the protocol thread. Memory: 4 bytes a parameter, and 4 more for each neighbour and for each
// of two that were, besides what waits to go onto these (runtime/replica/replica.h).
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
  // `own` is the peer's public copy, `initial` what everybody begins with. Refers to `own`, whose owner lets
  // begin_with() replace it.
  Neighbourhood(RunForm form, Replica& own, const NeighbourRules& rules);

  // pull[i] = share * sum_j (c_j - c_i)[i], in weights, over the neighbours that count; [params].
  void pull(double share, std::span<float> pull, Parallel& parallel) const;
  // rate * w. `density`: entries / parameters.
  double share(double density) const;
  // The weights of `count` of those that count, or of all: the next in a circle from one to the next turn. Valid until
  // the next change of a copy.
  std::vector<std::span<const std::int32_t>> teachers(std::size_t count, std::uint64_t turn) const;
  // So many samples are behind the own model that no update has told of yet.
  void set_untold(std::uint64_t samples) { untold_ = samples; }
  // All that this peer has trained itself, in earlier lives too.
  std::uint64_t own_samples() const { return own_.samples() + untold_; }

  // Those that count.
  std::size_t size() const;
  // What a peer has trained on the mean, in samples, as far as one can see from here (PROTOCOL.md 6.14.8).
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
  // Its copy goes into the sums, or out of them.
  void count(Neighbour& neighbour, bool counts);
  void forget_old(TimePoint now);

  RunForm form_;
  Replica& own_;
  const LargeVector<std::int32_t> initial_;
  NeighbourRules rules_;
  std::map<NodeId, Neighbour> neighbours_;
  LargeVector<std::int32_t> sums_;  // of the copies that count, modulo 2^32
  std::uint64_t untold_ = 0;
};

// The rate for messages of so many entries / parameters: half the root of the density. What is told of a difference
// falls with the density, and who draws faster than copies follow swings; the papers too have the rate fall with what
// compression keeps. The form is ours, from measurements (runtime/METHODS.md).
double consensus_rate(double density);

// How many links a peer wants that has so many neighbours.
gossip::LinkCounts links_of(const NeighbourRules& rules);

}  // namespace rumor
