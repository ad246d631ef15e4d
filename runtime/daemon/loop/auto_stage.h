// A peer that chooses its stage, and moves to another in the same process (gossip/PIPELINE.md 11).
//
//   DIR/identity.pem   its key, whichever stage it serves; also `admit` (runtime/daemon/admission/peer_admission.h)
//   DIR/stage-K/       state directory of the run of stage K, as `--stage K` has it but for the key
//
// Thread: plain function; it returns when the process may end.
#pragma once

#include "runtime/daemon/loop/event_loop.h"

namespace rumor::daemon {

// The state directory of the run of one stage, where a process keeps those of several in `home`.
std::string stage_folder(const std::string& home, std::uint32_t stage);

// Requires: options.stage_auto. Errors: those of run_peer() with a stage; Errc::usage for what only one stage can have.
Result<PeerEnd> run_auto_stage(const PeerOptions& options);

}  // namespace rumor::daemon
