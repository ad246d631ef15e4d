// StageLinks: who takes the links to peers of neighbouring stages (PIPELINE.md 9). The protocol admits and watches
// them as any link; all that a pipeline sends there goes through Protocol::send_to_stage() and ban_from_stage().
//
// Thread: called by the protocol, within its inputs. No function of the protocol may be called meanwhile.
#pragma once

#include "gossip/contract/events.h"
#include "gossip/wire/wire.h"

namespace rumor::gossip {

class StageLinks {
 public:
  virtual ~StageLinks() = default;
  // A link to a peer of the stage below or above has been admitted.
  virtual void linked(LinkId link) = 0;
  // It is closed: nothing is sent or expected there any more.
  virtual void unlinked(LinkId link) = 0;
  // A frame whose use is FrameUse::pipeline has come over such a link. Views in it last until the return.
  virtual void frame(LinkId link, const Frame& frame) = 0;
};

}  // namespace rumor::gossip
