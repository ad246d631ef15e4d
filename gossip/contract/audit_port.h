// AuditPort: whoever makes updates again, as the protocol sees it (PROTOCOL.md 6.16).
//
// Implemented by runtime/node. Calls are synchronous, take no time worth speaking of, and never call back into the
// protocol: an audit takes seconds, and its outcome is an input of its own (Protocol::checked(), withdraw()).
//
// Thread: one owner, as Protocol.
#pragma once

#include <memory>
#include <string>

#include "gossip/contract/revocation.h"
#include "gossip/contract/state_pieces.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// The outcome of an audit of a proof.
enum class Checked : std::uint8_t {
  differs,      // the update is false, and the proof keeps the right updates
  agrees,       // the proof is false
  cannot_tell,  // an update of its view, its data or its state is not to be had
};

class AuditPort {
 public:
  virtual ~AuditPort() = default;

  // The trainer's state before this update, for this asker. Null: it is not kept, or the asker has had its share.
  virtual std::shared_ptr<const KeptState> state(const UpdateKey& update, const NodeId& asker) = 0;
  // Answers Protocol::want_state(): the state is whole, and has the root that was asked for.
  virtual void state_arrived(const UpdateKey& update, Bytes state) = 0;
  // Nobody gives it.
  virtual void state_failed(const UpdateKey& update, const std::string& why) = 0;
  // Makes the false update of this proof again, to see whether it is false. Answered by Protocol::checked(). `holder`
  // has sent the proof, and so should have the state. At most 16 checks are unanswered at a time.
  virtual void check(const Revocation& proof, const NodeId& holder) = 0;
  // A peer has found this update of ours to be false: to make it again, and withdraw() it if that is so.
  virtual void charged(const UpdateKey& update) = 0;
};

}  // namespace rumor::gossip
