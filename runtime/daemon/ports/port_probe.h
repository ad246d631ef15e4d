// Probes of addresses for `rumor doctor`: is a port free, does somebody take connections.
//
// Thread: plain functions that block, probe_peer() for three seconds at most.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace rumor::daemon {

// Whether a peer could listen there now. Errors: Errc::usage (malformed), Errc::io with the system's reason.
Result<void> probe_port(const std::string& address);

// Checks that a connection opens, without checking who answers. Errors: Errc::usage, Errc::not_found with the reason.
Result<void> probe_peer(const std::string& address);

}  // namespace rumor::daemon
