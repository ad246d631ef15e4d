// The token of a status address: a client that sends it may read the figures of the peer.
//
// The token is a secret of the owner of the machine, unlike a join token. It travels in clear text: outside a trusted
// network, reach the status address through a tunnel (ssh -L).
//
// Thread: plain functions.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor::daemon {

// The first line of a file: 16 to 256 printable characters without blanks. Errors: Errc::not_found, Errc::io,
// Errc::usage (it is no token, and how to make one).
Result<std::string> read_status_token(const std::string& path);

// Whether two tokens are equal, in a time that does not depend on where they differ.
bool same_token(std::string_view one, std::string_view other);

}  // namespace rumor::daemon
