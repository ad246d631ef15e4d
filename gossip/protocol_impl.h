// The inside of Protocol: the session, the exchange, and the turn that brackets every input.
//
// protocol.cc has construction, the turn, and what the node does; incoming.cc links and frames; answers.cc what the
// node asks.
#pragma once

#include <memory>

#include "gossip/links/core.h"
#include "gossip/links/exchange.h"
#include "gossip/overlay/overlay.h"
#include "gossip/protocol.h"

namespace rumor::gossip {

struct Protocol::Impl {
  Impl(Options options, UpdateStore& store, Prng prng);

  // Sets time and outbox for one input. What is due at the end of the input happens in the destructor.
  class Turn {
   public:
    Turn(Impl& impl, TimePoint now, Outbox& out) : impl_(impl) { impl.core.begin(now, out); }
    ~Turn() { impl_.end_turn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Impl& impl_;
  };

  void end_turn();
  // Takes the link out of everything. It stays in the list until the driver says that it is down.
  void detach(Link& link);

  // A link to a peer of another stage; null if it is none.
  Link* beside(LinkId id) {
    const auto at = core.links.find(id);
    return at != core.links.end() && at->second.state == Link::State::beside ? &at->second : nullptr;
  }

  // Frames (incoming.cc).
  void receive(Link& link, BytesView bytes);
  void receive_beside(Link& link, const Frame& frame, const FrameRow& row, int type);
  void dispatch(Link& link, const Frame& frame);
  // One overload for each frame of the session.
  void on(Link& link, const Hello& hello);
  void on(Link& link, const Reject& message) { overlay.on_reject(link, message); }
  void on(Link& link, const Bye& message) { overlay.on_bye(link, message); }
  void on(Link& link, const Ping& message) { overlay.on_ping(link, message); }
  void on(Link& link, const Pong& message);
  void on(Link& link, const Peers& message) { overlay.on_peers(link, message); }
  void on(Link& link, const Invite& message) { overlay.on_invite(link, message); }
  void on(Link&, const Skipped&) {}

  Core core;
  Overlay overlay;
  std::unique_ptr<Exchange> exchange;  // never null
  bool left = false, started = false;
};

}  // namespace rumor::gossip
