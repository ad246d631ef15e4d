// http_get: fetches one path of a peer's status server, for tools. http_post: sends bytes to any HTTP server.
//
// Thread: http_get() blocks the caller two seconds at most, http_post() six.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace rumor::daemon {

// The body of http://HOST_PORT PATH. `token`: of the status address; empty: none. Errors: Errc::not_found (nobody
// answers there), Errc::usage (it needs another token), Errc::io (not a status server).
Result<std::string> http_get(const std::string& host_port, const std::string& path,
                             const std::string& token = "");

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// Posts `body`, as application/octet-stream. The server has one second to accept and five to answer. Errors:
// Errc::usage (a malformed address), Errc::not_found (nobody answers there).
Result<HttpAnswer> http_post(const std::string& host_port, const std::string& path, const std::string& body);

}  // namespace rumor::daemon
