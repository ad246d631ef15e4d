// Runs a peer or a follower with the options that both have.
//
// Thread: plain function; it returns when the process may end.
#pragma once

#include "runtime/daemon/loop/event_loop.h"
#include "tools/words/command.h"

namespace rumor::tools {

// `options` has all that is not in `words`; its config is the run's. Returns the exit status.
int run_member(const MemberWords& words, daemon::PeerOptions options);

}  // namespace rumor::tools
