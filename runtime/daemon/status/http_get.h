// http_get: fetches one path of a peer's status server, for tools.
//
// Thread: blocks the caller, two seconds at most.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace rumor::daemon {

// The body of http://HOST_PORT PATH. `token`: of the status address; empty: none. Errors: Errc::not_found (nobody
// answers there), Errc::usage (it needs another token), Errc::io (not a status server).
Result<std::string> http_get(const std::string& host_port, const std::string& path,
                             const std::string& token = "");

}  // namespace rumor::daemon
