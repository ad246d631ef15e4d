// Several stages of a pipeline in one process: a whole peer for each, in a thread of its own (gossip/PIPELINE.md 14).
// The peers share the process, its signals and stderr, and nothing else; they meet over loopback as any peers do.
//
//   DIR/stage-K/       state directory of the peer of stage K, as `--stage K` has it
//
// Thread: plain function; it returns when the process may end.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/daemon/loop/event_loop.h"

namespace rumor::daemon {

// Requires: options.stages. One stage is a list, too. The end has the highest exit status, and the status of each stage
// as {"stages": [...]}. Errors: those of run_peer() with a stage, which name the stage; Errc::usage for what only one
// stage can have.
Result<PeerEnd> run_several_stages(const PeerOptions& options);

// The address of the peer that is `index` places behind the first one, which has `first`: "host:port" with a port as
// much higher; port 0 stays. Errors: Errc::usage, no such port; those of net::parse_address().
Result<std::string> address_behind(const std::string& first, std::size_t index);
// Where this machine dials a peer that listens at `bound`: on loopback, if that is any address.
std::string dialled_here(const std::string& bound);

}  // namespace rumor::daemon
