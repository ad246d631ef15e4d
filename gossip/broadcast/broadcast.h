// Broadcast: the exchange in which every update goes to every peer, exactly once (PROTOCOL.md 6.1 to 6.13).
//
// It composes the parts and owns the order in which they hear of things:
//   Spread     announces, pulls and pushes new updates
//   Repair     finds out by digests and vectors what is missing, and pulls it
//   Joining    takes another peer's snapshot where that is cheaper, with Download, and gives snapshots
//   Revoking   takes updates back on the owner's word, on their origin's, or by a proof
//   Proofs     has proofs checked that an update is false
//   States     fetches and gives trainers' states for audits
//   Evidence   finds who has signed two updates under one name
//   SharedBuffers spreads what each node keeps beside the weights
//   QueueProbe measures how long updates wait at the uplink
//
// Thread: one owner, as Protocol.
#pragma once

#include "gossip/audits/proofs.h"
#include "gossip/audits/states.h"
#include "gossip/broadcast/evidence.h"
#include "gossip/broadcast/joining.h"
#include "gossip/broadcast/queue_probe.h"
#include "gossip/broadcast/repair.h"
#include "gossip/broadcast/revoking.h"
#include "gossip/broadcast/spread.h"
#include "gossip/broadcast/state.h"
#include "gossip/buffers/shared_buffers.h"
#include "gossip/links/exchange.h"
#include "gossip/overlay/overlay.h"

namespace rumor::gossip {

class Broadcast final : public Exchange {
 public:
  // Both must outlive the exchange.
  Broadcast(Core& core, Overlay& overlay);

  FrameUse frames() const override { return FrameUse::broadcast; }
  bool links_are_cheap() const override { return true; }

  std::unique_ptr<LinkState> new_link() override { return std::make_unique<BroadcastLink>(); }
  void on_admitted(Link& link, const Hello& hello) override;
  void on_detached(Link& link) override;
  void on_frame(Link& link, const Frame& frame) override;
  bool on_pong(Link& link, const Pong& pong) override { return probe_.on_pong(link, pong); }
  void on_backlog(Link& link) override { spread_.on_backlog(link); }

  void start() override;
  void publish(const StoredUpdate& update) override;
  bool may_publish(TimePoint now) const override;
  TimePoint publishes_from() const override { return state_.pace.publishes_from(); }
  double density_factor() const override;
  void finished_changed() override { repair_.finished_changed(); }
  void share_buffers(Bytes values, std::uint64_t progress) override { buffers_.share(std::move(values), progress); }
  NodeBuffers node_buffers() const override { return buffers_.all(); }
  void rule_changed() override;
  Result<void> revoke(const Revocation& revocation) override { return revoking_.revoke(revocation, nullptr); }
  void want_state(WantedState wanted) override { states_.want(std::move(wanted)); }
  bool gives_state() const override { return states_.gives(); }
  void charge(const UpdateKey& update, const NodeId& origin) override;
  void checked(const Revocation& proof, Checked verdict) override { proofs_.checked(proof, verdict); }

  void end_turn(bool alone) override;
  void tick() override;
  TimePoint due() const override;

  bool ready() const override { return repair_.ready(); }
  std::string waiting_for() const override;
  std::optional<ReplicaDigest> expected_digest(const Link&, const ReplicaDigest& ours) const override { return ours; }
  bool has_converged(const Link& link, const ReplicaDigest& ours) const override;
  void check_invariants() const override;

 private:
  // One overload for each frame of this exchange; another frame does not compile.
  void on(Link& link, const StreamDef& message) { state_.streams.define(link, message); }
  void on(Link& link, const Have& message) { spread_.on_have(link, message); }
  void on(Link& link, const Want& message) { spread_.on_want(link, message); }
  void on(Link& link, const Subscribe& message) { spread_.on_subscribe(link, message); }
  void on(Link& link, const Decline& message) { spread_.on_decline(link, message); }
  void on(Link& link, const Data& message);
  void on(Link& link, const DataMore& message);
  void on(Link& link, const Digest& message) { repair_.on_digest(link, message); }
  void on(Link& link, const Vector& message) { repair_.on_vector(link, message); }
  void on(Link& link, const NotAvailable& message);
  void on(Link& link, const SnapshotAsk& message) { joining_.on_ask(link, message); }
  void on(Link& link, const SnapshotJoin& message) { joining_.on_join(link, message); }
  void on(Link& link, const SnapshotOffer& message) { joining_.on_offer(link, message); }
  void on(Link& link, const SnapshotWant& message) { joining_.on_want(link, message); }
  void on(Link& link, const SnapshotData& message);
  void on(Link& link, const Revocations& message) { revoking_.on_revocations(link, message); }
  void on(Link& link, const Headers& message) { evidence_.on_headers(link, message); }
  void on(Link& link, const Buffers& message) { buffers_.on_buffers(link, message); }
  void on(Link& link, const Equivocation& message) { evidence_.on_equivocation(link, message); }
  void on(Link& link, const TakenBack& message);
  void on(Link& link, const StateWant& message) { states_.on_want(link, message); }
  void on(Link& link, const StateData& message) { states_.on_data(link, message); }
  void on(Link& link, const Charge& message);

  void after_data(Link& link);
  void installed();

  Core& core_;
  BroadcastState state_;
  Spread spread_;
  QueueProbe probe_;
  Joining joining_;
  Evidence evidence_;
  Repair repair_;
  Revoking revoking_;
  Proofs proofs_;
  States states_;
  SharedBuffers buffers_;
  std::uint64_t buffers_before_ = 0;  // Core::buffers_hash at the end of the last turn
  bool was_busy_ = false;  // joining_ was, at the end of the last turn
};

}  // namespace rumor::gossip
