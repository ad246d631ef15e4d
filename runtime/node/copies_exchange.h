// CopiesExchange: modes "average" and "codistill". Each peer trains a model of its own; its replica is the public copy
// of that model, and the copies of its neighbours are beside it (runtime/exchange/neighbourhood.h).
//
// Thread: one owner, as Node.
#pragma once

#include <optional>

#include "runtime/exchange/neighbourhood.h"
#include "runtime/node/exchange.h"

namespace rumor {

class CopiesExchange final : public Exchange {
 public:
  CopiesExchange(NodeCore& core, HeldUpdates& held);

  void configure(gossip::Options& options) override;
  // Nothing is logged: a neighbour that lacks updates takes the whole copy.
  Result<std::uint64_t> open(Disk&) override { return std::uint64_t{0}; }

  // An estimate from the neighbours and the number of members.
  std::uint64_t samples() const override;
  std::size_t live_count() const override { return 1 + neighbourhood_.size(); }
  std::size_t density_peers() const override { return 1; }
  double rate() const override;
  std::uint32_t batches() const override { return 1; }

  void set_unpublished(std::uint64_t samples) override { neighbourhood_.set_unpublished(samples); }

  bool publishes_next() const override;
  void begin_step(StepPlan& plan) override;
  void show_for_evaluation() override;

  void finish() override { samples_at_end_ = samples(); }
  bool handed_over(std::span<const gossip::PeerInfo>) const override { return true; }

  void fill(NodeStatus& status) const override;
  const Neighbourhood* neighbourhood() const override { return &neighbourhood_; }
  void check_invariants() const override { neighbourhood_.check_invariants(); }

 private:
  NodeCore& core_;
  Replica& replica_;
  Neighbourhood neighbourhood_;
  std::optional<std::uint64_t> samples_at_end_;  // the estimate ends with the last links, so it is kept
};

}  // namespace rumor
