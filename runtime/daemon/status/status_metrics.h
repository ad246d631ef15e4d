// The /metrics text of a peer: Prometheus names by convention (rumor_ prefix, base units, _total for
// counters).
//
// Thread: plain function.
#pragma once

#include <string>

#include "runtime/node/node_status.h"

namespace rumor::daemon {

std::string status_metrics(const NodeStatus& status);

}  // namespace rumor::daemon
