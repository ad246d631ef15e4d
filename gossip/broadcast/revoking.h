// Revoking: updates are taken back, on the word of the run's owner or of their origin, or by a proof that everybody
// can check (PROTOCOL.md 6.10). A revocation is an element of the replicated set: it is for ever, every node sends it
// to every link, and the order of arrival does not matter.
//
// Thread: one owner, as Protocol. Memory: limits::revocations_max of them, in the store.
#pragma once

#include "gossip/broadcast/joining.h"
#include "gossip/broadcast/state.h"
#include "gossip/overlay/overlay.h"

namespace rumor::gossip {

class Revoking {
 public:
  Revoking(BroadcastState& state, Overlay& overlay, Joining& joining)
      : core_(state.core),
        streams_(state.streams),
        missing_(state.missing),
        flow_(state.flow),
        overlay_(overlay),
        joining_(joining) {}

  // Sends a new link all revocations.
  void admitted(Link& link);
  // Both close the link for a revocation that is not signed as it should be. Requires: none of them is a proof.
  void on_revocations(Link& link, const Revocations& message);
  void follow(Link& link, const Revocation& revocation);
  // Follows a revocation and sends it to all links but `from`. A proof must have been checked. Errors as
  // Protocol::revoke().
  Result<void> revoke(const Revocation& revocation, const Link* from);
  // The store has taken over another's state, with its revocations.
  void installed();
  // Stops admitting the nodes that a revocation puts out.
  void put_out();
  // Those that are part of the replica now, or needless beside its own, need no snapshot any more.
  void forget_done();

 private:
  Core& core_;
  Streams& streams_;
  MissingKeys& missing_;
  UpdateFlow& flow_;
  Overlay& overlay_;
  Joining& joining_;
};

}  // namespace rumor::gossip
