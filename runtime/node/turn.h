// Turn: one call of a node's handler. It has the time of the call and collects its effects.
//
// The node's own effects go to `out` at once. Those of the protocol follow when the turn ends, in the order in which
// the protocol made them; then comes the list of applied updates (Node::end_turn).
//
// Thread: lives on the stack of the handler.
#pragma once

#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/update_store.h"
#include "runtime/base/time.h"
#include "runtime/node/node_events.h"

namespace rumor {

struct Turn {
  TimePoint now;
  NodeOutbox& out;
  gossip::Outbox network = {};                     // of the protocol
  std::vector<gossip::UpdateHeader> applied = {};  // of other peers, when NodeOptions.report_applied

  void note(gossip::Note::Level level, std::string text) { out.push_back(gossip::Note{level, std::move(text)}); }
};

}  // namespace rumor
