// Figures of updates that a peer has made or kept: a capture, a state directory, a running peer.
//
// Thread: plain functions.
#pragma once

#include "tools/stats/stats_file.h"

namespace rumor::tools {

// Own updates as `rumor peer --capture` wrote them. Errors: Errc::corrupt, Errc::mismatch.
Result<StatsReport> stats_of_capture(const std::string& source, BytesView bytes);

// The updates in the log of the newest checkpoint, of all peers, and the residual of the peer that wrote it.
// Errors: Errc::not_found (no checkpoint there), Errc::corrupt, Errc::mismatch.
Result<StatsReport> stats_of_state_directory(const std::string& directory);

// The newest own updates of the peer with the status address `host_port`.
// Errors: Errc::not_found (no answer), Errc::io (not a peer).
Result<StatsReport> stats_of_running_peer(const std::string& host_port, const std::string& token_file);

}  // namespace rumor::tools
