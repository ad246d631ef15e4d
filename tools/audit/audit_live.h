// An auditor of a running swarm, as `rumor audit` and `rumor follow --audit` have it (runtime/AUDIT.md, "The audit").
//
// Thread: plain functions.
#pragma once

#include "runtime/daemon/loop/event_loop.h"
#include "tools/words/command.h"

namespace rumor::tools {

// The part that --peer and --steps name. Errors: Errc::usage.
Result<audit::AuditedPart> audited_part(const AuditCommand& command);

// A follower of this run that audits all its peers. Errors: Errc::usage for a run without records or segments.
Result<daemon::PeerOptions> auditor_options(RunConfig config);

// Audits the swarm at command.target until the run is over or the user interrupts; prints what it found. Returns the
// exit status: 1 where a segment differs.
int audit_live(const AuditCommand& command);

}  // namespace rumor::tools
