// Exchange: how a run passes what its peers learn from one to another. Each run has one: every update to every peer
// (gossip/broadcast), or the public copies of neighbours that have models of their own (gossip/copies).
//
// Protocol owns the session: Overlay finds peers and keeps links. The exchange owns everything that travels on an
// admitted link beyond that. Protocol calls it in turns: one input, then end_turn(). No call may remove a link; an
// exchange closes it through Core, and hears of it in on_detached() at the end of the turn.
//
// Thread: one owner, as Protocol.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "gossip/contract/events.h"
#include "gossip/links/core.h"

namespace rumor::gossip {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Frames with this use, and FrameUse::exchanges, come to on_frame(). Others have no place in the run.
  virtual FrameUse frames() const = 0;
  // Whether a link more costs little: Overlay then tries links at random, in search of better ones.
  virtual bool links_are_cheap() const = 0;
  // How many unsent bytes may wait on a link. Constant.
  virtual BacklogMarks backlog_marks() const { return {}; }

  // ---- links ----
  // The exchange's state about a link that has just come up (Link::exchange). May be null.
  virtual std::unique_ptr<LinkState> new_link() { return nullptr; }
  // The link has just been admitted by this greeting.
  virtual void on_admitted(Link& link, const Hello& hello) = 0;
  // The link is closed, admitted or not: nothing is sent or expected there any more.
  virtual void on_detached(Link& link) = 0;
  // Requires: the link is admitted, and the frame's use is frames() or FrameUse::exchanges.
  virtual void on_frame(Link& link, const Frame& frame) = 0;
  // Returns true when this answers a PING of the exchange's own.
  virtual bool on_pong(Link& /*link*/, const Pong& /*pong*/) { return false; }
  // link.backlogged has been set. Requires: the link is admitted.
  virtual void on_backlog(Link& link) = 0;

  // ---- the node's own part ----
  virtual void start() = 0;
  // An own update, in the store already.
  virtual void publish(const StoredUpdate& update) = 0;
  // False: an update made now had better wait. Requires: at least one link is admitted.
  virtual bool may_publish(TimePoint now) const = 0;
  // As Protocol has it.
  virtual TimePoint publishes_from() const { return long_ago; }
  // The share of its planned density that the next update may have. Requires as may_publish().
  virtual double density_factor() const { return 1; }
  // Core::finished has changed.
  virtual void finished_changed() = 0;
  // Says this node's buffers to all. An exchange of peers with models of their own ignores it.
  virtual void share_buffers(Bytes /*values*/, std::uint64_t /*progress*/) {}
  virtual NodeBuffers node_buffers() const { return {}; }
  // Core::rule has changed. Overlay judges the links after this.
  virtual void rule_changed() = 0;
  // Errors as Protocol::revoke().
  virtual Result<void> revoke(const Revocation& revocation) = 0;

  // ---- audits, as Protocol has them; an exchange of peers with models of their own has none ----
  virtual void want_state(WantedState /*wanted*/) {}
  virtual bool gives_state() const { return false; }
  virtual void charge(const UpdateKey& /*update*/, const NodeId& /*origin*/) {}
  virtual void checked(const Revocation& /*proof*/, Checked /*verdict*/) {}

  // ---- time ----
  // Ends every turn. `alone`: no peer can be asked for anything to begin with (never true once ready()).
  virtual void end_turn(bool alone) = 0;
  // Does what is due by Core::now.
  virtual void tick() = 0;
  virtual TimePoint due() const = 0;

  // ---- what it knows ----
  // Whether training may start: this peer has what the first peer had when they met.
  virtual bool ready() const = 0;
  // One line for people: what is awaited or fetched. Empty when nothing is. Requires: a link is admitted.
  virtual std::string waiting_for() const = 0;
  // The digest that shows that the other end of the link has what it should; `ours` is our own.
  virtual std::optional<ReplicaDigest> expected_digest(const Link& link, const ReplicaDigest& ours) const = 0;
  // Whether nothing more is to come on this link once both ends have finished. Requires: link.digest.
  virtual bool has_converged(const Link& link, const ReplicaDigest& ours) const = 0;
  virtual void check_invariants() const = 0;
};

// Calls `answer` with the message in a frame that an exchange of this use takes. Every such message of the frame table
// must have an answer, or this does not compile.
template <FrameUse use, class Answer>
void dispatch_frame(const Frame& frame, Answer answer) {
  std::visit(
      [&](const auto& message) {
        constexpr FrameUse its_use = row_of<std::decay_t<decltype(message)>>.use;
        if constexpr (its_use == use || its_use == FrameUse::exchanges) answer(message);
      },
      frame);
}

}  // namespace rumor::gossip
