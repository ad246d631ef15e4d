// Takes up what an earlier life of a peer has left in its state directory: log, checkpoint and contributions; and
// leaves there what readers of the directory want to know.
//
// Thread: plain function, on the protocol thread, before Node::start().
#pragma once

#include "runtime/daemon/console/console.h"
#include "runtime/daemon/loop/event_loop.h"
#include "runtime/daemon/state/peer_files.h"
#include "runtime/node/node.h"

namespace rumor::daemon {

// Errors: Errc::mismatch, naming what differs, when they are of another run.
Result<void> take_up_state(Node& node, const PeerFiles& files, Console& console);

// Writes the descriptions of model, adapters, tokenizer, buffers and stage that `training` has. Errors: Errc::io.
Result<void> keep_descriptions(const PeerFiles& files, const Training& training);

}  // namespace rumor::daemon
