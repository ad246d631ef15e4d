// Protocol: membership, links and the exchange of updates, as one function from (input, time) to effects.
//
// gossip/PROTOCOL.md is its specification. The class composes Overlay (members and links) with the run's exchange
// (links/exchange.h): Broadcast, or Copies where peers have models of their own.
//
// Thread: one owner. No clock, socket, thread or entropy source: time comes in, chance comes from the Prng
// given. Bytes from peers never reach a RUMOR_CHECK; a malformed frame closes its link with a reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/update_store.h"
#include "gossip/links/figures.h"
#include "gossip/links/options.h"
#include "gossip/trust/admission.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

class Protocol {
 public:
  // `store` must outlive the protocol.
  Protocol(Options options, UpdateStore& store, Prng prng);
  ~Protocol();

  // ---- inputs; each appends to `out` ----
  void start(TimePoint now, Outbox& out);
  void on_link_up(const LinkUp& up, TimePoint now, Outbox& out);
  void on_frame(LinkId link, BytesView frame, TimePoint now, Outbox& out);
  void on_link_down(LinkId link, const std::string& reason, TimePoint now, Outbox& out);
  void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now, Outbox& out);
  // The driver's queue of unsent bytes on a link crossed backlog_marks().high (true) or fell below .low (false).
  void on_backlog(LinkId link, bool full, TimePoint now, Outbox& out);
  void on_time(TimePoint now, Outbox& out);

  // Sets a new list: closes links that it does not admit; nodes that have gone from `allowed` count as refused from now
  // on. The owner stays as it was.
  void set_rule(AdmissionRule rule, TimePoint now, Outbox& out);
  // Sets where others may dial us from now on, in place of Options::advertise, and sends it to all members.
  void set_addresses(std::vector<std::string> addresses, TimePoint now, Outbox& out);
  // Asks some neighbours to try whether they can dial us, although we are linked. reach() shows the result.
  void ask_to_be_dialled(TimePoint now, Outbox& out);
  // Takes updates back and tells all: on the owner's word, from this peer's own files or others, or by a proof, which
  // the caller must have checked. Errors: Errc::mismatch when it is not signed as it should be; Errc::limit when this
  // replica can no longer take it back by itself (PROTOCOL.md 6.10); Errc::usage with models of their own.
  Result<void> revoke(const Revocation& revocation, TimePoint now, Outbox& out);

  // ---- audits (PROTOCOL.md 6.16; requires Options::audits) ----
  // Ends in AuditPort::state_arrived() or state_failed(), perhaps within the call; once for all wishes for the same
  // state, whose holders are asked one after another.
  void want_state(WantedState wanted, TimePoint now, Outbox& out);
  // Another node has been granted a state of ours and has not had all of it.
  bool gives_state() const;
  // Tells the origin that this node finds its update false, if there is a link.
  void charge(const UpdateKey& update, const NodeId& origin, TimePoint now, Outbox& out);
  // Answers AuditPort::check().
  void checked(const Revocation& proof, Checked verdict, TimePoint now, Outbox& out);
  // Takes back the updates of this process from number `first` on. It must not publish any more. Errors: as revoke().
  Result<void> withdraw(std::uint64_t first, TimePoint now, Outbox& out);

  // ---- links to neighbouring stages (PIPELINE.md 9; requires Options::stage) ----
  // Of a link that StageLinks::linked() named; on any other they do nothing.
  void send_to_stage(LinkId link, OutFrame frame, Lane lane, TimePoint now, Outbox& out);
  // Bans the peer: it did what no honest one does.
  void ban_from_stage(LinkId link, const std::string& reason, TimePoint now, Outbox& out);
  // Links to peers of this stage, as StageLinks has heard of them.
  std::size_t links_to_stage(std::uint32_t stage) const;
  // None: it is not up.
  std::optional<StageLinkInfo> stage_link(LinkId link) const;

  // An own update, already accepted by the store. Spreads it. Requires: its stream is Options::stream.
  void publish(const StoredUpdate& update, TimePoint now, Outbox& out);
  // False: this origin is ahead of the network, and its next change had better wait in the residual. Only advice:
  // publish() may be called all the same.
  bool may_publish(TimePoint now) const;
  // may_publish() is false before this; links whose backlog goes are told by events, not by this.
  TimePoint publishes_from() const;
  // The share of its planned density that the next own update had better have, in (0, 1]: less than 1 while DATA waits
  // for the uplink. Always 1 with GiveWay::rarer_updates. Advice as well.
  double density_factor() const;
  // We train no more (true) or again (false): sent to all links, and shown there in PeerInfo.finished.
  void set_finished(bool finished, TimePoint now, Outbox& out);
  // Says this peer's buffers to all (PROTOCOL.md 6.15), as of `progress` samples of the run. Where peers have models of
  // their own it does nothing. Requires: 0 < values.size() <= limits::buffers_bytes_max.
  void share_buffers(Bytes values, std::uint64_t progress, TimePoint now, Outbox& out);
  // Says goodbye to every link and closes them. Nothing may be called afterwards but on_link_down.
  void leave(TimePoint now, Outbox& out);

  // When on_time() wants to be called next.
  TimePoint next_deadline() const;
  // Constant.
  BacklogMarks backlog_marks() const;

  // ---- what the node asks ----
  // Training may start: every first contact has been tried, and we have what the first peer had when we met. Also true
  // when no seed answered (alone is fine); waiting_for() then says what is being tried.
  bool ready_to_train() const;
  // Empty, or one line: "no peer has answered yet (tried 127.0.0.1:7001: connection refused); training
  // alone".
  std::string waiting_for() const;
  // Every seed that answered belongs to another run, and none to ours: one line naming both. Empty otherwise.
  std::string refused_by_run() const;
  // Two replicas with the same updates differ; names the peer. Empty otherwise.
  std::string divergence() const;
  // Another process runs with this peer's key and began before this one, or both went on from one image of a machine:
  // this one must end. Names both places and the remedy. Empty otherwise.
  std::string superseded() const;
  // Two processes run with one key, this peer's or another's, as seen within the last minutes: one line with the
  // remedy. Empty otherwise.
  std::string identity_trouble() const;
  // The token in our record, with a member's confirmation once one has admitted us. Worth keeping.
  const Bytes& own_admit() const;
  // Admitted links exist and every one of them has finished and, but with models of their own, a digest equal to ours;
  // true when there are none.
  bool converged() const;

  // As every peer has said them, this one included. Peers that converged have the same.
  NodeBuffers node_buffers() const;
  // Another number after each change of them; 0 before the first.
  std::uint64_t buffers_hash() const;
  std::vector<PeerInfo> peers() const;
  std::vector<KnownAddress> known_addresses() const;
  // All stages of the pipeline, ourselves and those left out that have said goodbye. Requires: Options::stage.
  std::vector<StageMember> stage_members() const;
  std::size_t members() const;       // in the table, ourselves included
  std::vector<NodeId> nodes() const;  // those members, in order
  std::size_t members_here() const;  // members that have not said goodbye to us
  // Members whose last link to us ended without a goodbye, until we hear of them again. In order.
  std::vector<NodeId> lost() const;
  const Counters& counters() const;
  const Reach& reach() const;

  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::gossip
