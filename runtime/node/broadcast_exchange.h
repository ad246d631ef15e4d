// BroadcastExchange: mode "broadcast". Every update goes to every peer, so replicas become equal. Training does not
// wait: the trainer computes at the replica plus an estimate of what others are doing (InFlightView), live peers share
// the learning rate (LivePeers), and rules limit the damage of late updates (Staleness). Some of the peers may train at
// a time (Turns).
//
// Thread: one owner, as Node.
#pragma once

#include <optional>
#include <string>

#include "runtime/exchange/in_flight_view.h"
#include "runtime/exchange/live_peers.h"
#include "runtime/exchange/round_length.h"
#include "runtime/exchange/staleness.h"
#include "runtime/exchange/turns.h"
#include "runtime/exchange/view_weight.h"
#include "runtime/node/exchange.h"

namespace rumor {

class BroadcastExchange final : public Exchange {
 public:
  BroadcastExchange(NodeCore& core, HeldUpdates& held);

  void configure(gossip::Options& options) override;
  Result<std::uint64_t> open(Disk& disk) override { return held_.open(disk); }

  std::uint64_t samples() const override { return held_.replica().samples(); }
  std::size_t live_count() const override;
  std::size_t density_peers() const override { return live_count(); }
  double rate() const override;
  std::uint32_t batches() const override { return round_.length(); }
  double brake() const override { return late_factor(); }
  std::vector<InFlightView::Waiting> in_flight() const override { return in_flight_.waiting(); }

  void arrives(const NodeId& origin, const compress::SparseUpdate& change) override {
    view_weight_.seen(origin, change);
  }
  void applied(const gossip::UpdateHeader& header, TimePoint now) override;
  void published(const gossip::StoredUpdate& update, compress::SharedUpdate change, TimePoint now) override;
  void expire(TimePoint now) override;

  bool must_wait(TimePoint now) override;
  std::optional<TimePoint> waits_until() const override;
  std::string waiting_for() const override;
  bool turn_ends() const override { return turns_.end(own_period_); }
  void begin_step(StepPlan& plan) override;
  std::string warning() override;
  void work_ahead() override;
  void show_for_evaluation() override;

  bool handed_over(std::span<const gossip::PeerInfo> neighbours) const override;

  void fill(NodeStatus& status) const override;

 private:
  // For this the next step waits.
  enum class Waits : std::uint8_t { no, turn, updates, links, early_phase };

  Waits waits(TimePoint now);
  void turn_began();
  bool waits_for_links(TimePoint now);
  void show_weights();
  double late_factor() const;
  bool leaves_early_phase_to_others(TimePoint now);
  TimePoint early_patience_ends() const;

  NodeCore& core_;
  HeldUpdates& held_;
  ViewWeight view_weight_;
  InFlightView in_flight_;
  Staleness staleness_;
  LivePeers live_;
  Turns turns_;
  RoundLength round_;
  std::uint64_t own_period_ = 0;           // of the last step
  Waits waits_ = Waits::no;
  TimePoint waits_since_ = long_ago;  // the last change of waits_
  TimePoint links_until_ = never;     // while it waits for links: when to look again, whatever happens
  bool begins_anyway_ = false;             // in the early phase, since no other peer has begun
  bool warned_ = false, told_unlike_ = false, told_of_turns_ = false;
};

}  // namespace rumor
