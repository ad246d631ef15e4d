// Exchange: how updates pass between this peer's model and the other peers. There is one implementation for each
// exchange.mode, and no other part of the node asks for the mode. gossip/links/exchange.h is its twin: that one carries
// updates over links, this one decides what they do to training.
//
// broadcast_exchange.h  every update to every peer; replicas are equal
// copies_exchange.h     every peer has a model of its own and holds public copies of its neighbours' models
//
// Thread: one owner, as Node.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/payload/update.h"
#include "gossip/protocol.h"
#include "runtime/exchange/in_flight_view.h"
#include "runtime/replica/held_updates.h"
#include "runtime/run/run_config.h"
#include "runtime/training/trainer.h"

namespace rumor {

class Neighbourhood;
struct NodeCore;
struct NodeStatus;

class Exchange {
 public:
  // Errors: Errc::usage when the run's mode is not for peers, or the trainer cannot train in it.
  static Result<void> check(const RunConfig& config, Trainer& trainer);
  // Refers to both. Requires: check().
  static std::unique_ptr<Exchange> make(NodeCore& core, HeldUpdates& held);
  virtual ~Exchange() = default;

  // ---- before the node starts ----
  // Tells the protocol how updates travel.
  virtual void configure(gossip::Options& /*options*/) {}
  // Reads what an earlier process held on `disk`. Returns how many bytes of the log were damaged and left out.
  // Errors: Errc::mismatch when the files are of another run.
  virtual Result<std::uint64_t> open(Disk& disk) = 0;

  // ---- the run as seen from here ----
  // Training samples behind the run, all peers together.
  virtual std::uint64_t samples() const = 0;
  // Peers that train together, this one included.
  virtual std::size_t live_count() const = 0;
  // Peers that share the density of the run file (RunConfig::density_for).
  virtual std::size_t density_peers() const = 0;
  // The learning rate of this peer's next step.
  virtual double rate() const = 0;
  // Mini-batches of the next step.
  virtual std::uint32_t batches() const = 0;
  // For a record of the step that begins (runtime/AUDIT.md): the factor in rate() by which this peer brakes, and the
  // own updates in its view that others have not answered.
  virtual double brake() const { return 1; }
  virtual std::vector<InFlightView::Waiting> in_flight() const { return {}; }

  // ---- updates ----
  // An update of another peer is about to enter the replica, and then is in it.
  virtual void arrives(const NodeId& /*origin*/, const compress::SparseUpdate& /*change*/) {}
  virtual void applied(const gossip::UpdateHeader& /*header*/, TimePoint /*now*/) {}
  // An own update is in the replica, as `change`.
  virtual void published(const gossip::StoredUpdate& /*update*/, compress::SharedUpdate /*change*/,
                         TimePoint /*now*/) {}
  // Samples of own steps that are in no update yet.
  virtual void set_unpublished(std::uint64_t /*samples*/) {}
  // Forgets peers that have been silent for too long.
  virtual void expire(TimePoint /*now*/) {}

  // ---- own steps ----
  // Whether the next step must wait for other peers.
  virtual bool must_wait(TimePoint /*now*/) { return false; }
  // Absent: no step waits. Else when to ask must_wait() again although nothing has arrived; may be `never`.
  virtual std::optional<TimePoint> waits_until() const { return std::nullopt; }
  // One line for people: what a step waits for. Empty: none waits.
  virtual std::string waiting_for() const { return {}; }
  // Whether the next step shall end in an update.
  virtual bool publishes_next() const { return true; }
  // Whether this peer's turn to train ends (runtime/exchange/turns.h), so that its next step shall send from the
  // residual alone.
  virtual bool turn_ends() const { return false; }
  // Shows the trainer the weights to compute at, and sets those members of the plan that depend on other peers: period,
  // teachers, drift_bound. Requires: plan.hold is set, and the trainer is idle.
  virtual void begin_step(StepPlan& plan) = 0;
  // A line for people about how the exchange slows training down, once. Empty: nothing new.
  virtual std::string warning() { return {}; }
  // Work that the next step need not wait for. Requires: the trainer is idle.
  virtual void work_ahead() {}
  // Shows the trainer the weights to evaluate. Requires: the trainer is idle.
  virtual void show_for_evaluation() = 0;

  // ---- the end ----
  // This peer trains no more.
  virtual void finish() {}
  // Whether one of these neighbours, which have finished, will carry on all that this peer has.
  virtual bool handed_over(std::span<const gossip::PeerInfo> neighbours) const = 0;

  // ---- questions ----
  // Sets the figures that are the exchange's own, and adds its memory.
  virtual void fill(NodeStatus& status) const = 0;
  // Null: no models of their own.
  virtual const Neighbourhood* neighbourhood() const { return nullptr; }
  virtual void check_invariants() const {}
};

}  // namespace rumor
